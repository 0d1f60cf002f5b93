#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <csignal>
#include <limits>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/near_name.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/safe_open.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("checksums give the published values") {
  const std::string digits = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(digits.data(), digits.size()))) ==
        0xE3069283u);  // RFC 3720's check value
  CHECK(
      sha256_hex("abc") ==
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2
  const ScratchFolder folder;
  CHECK(sha256_file(folder.write("f", "abc")) == sha256_hex("abc"));
  CHECK(error_of<AbsentError>([&] {
          sha256_file(folder / "absent");
        }).find("absent") != std::string::npos);
}

TEST_CASE("an error's text is a format, and ready text where it is alone") {
  const std::string file = "{t}.csv";
  CHECK(std::string(DataError("[x] {}:{}: {{}}", file, size_t{3}).what()) ==
        "[x] {t}.csv:3: {}");
  CHECK(std::string(ConfigError("[x] {}: " + file).what()) ==
        "[x] {}: {t}.csv");
  CHECK(ConfigError("[x] {}", 1).code() == ExitCode::kUsage);
}

TEST_CASE("an error's text has no byte that a terminal obeys") {
  const DataError error(
      std::string("[x] a\0b\x1b[2J\tc.\n\x7f Hint: \xC3\xA4", 25));
  CHECK(std::string(error.what()) ==
        "[x] a\\x00b\\x1b[2J\tc.\n\\x7f Hint: \xC3\xA4");
}

TEST_CASE("the nearest names come first") {
  CHECK(nearest_names("tran.lr", {"data.crop", "train.lr", "train.eps"}, 1) ==
        "'train.lr'");
  CHECK(nearest_names("x", {}, 3).empty());
}

TEST_CASE("a name is near if it may be misspelt") {
  CHECK(is_near("--rnks", "--ranks"));
  CHECK(is_near("trian", "train"));
  CHECK(is_near("--otu", "--out"));
  CHECK(is_near("--ste", "--set"));
  CHECK_FALSE(is_near("--tou", "--out"));
  CHECK(is_near("eval", "evaluate"));
  CHECK(is_near("--heat", "--heatmap-findings"));
  CHECK_FALSE(is_near("--outt", "--set"));
  CHECK_FALSE(is_near("--foo", "--out"));
  CHECK_FALSE(is_near("--epochs", "--gpus"));
  CHECK_FALSE(is_near("frobnicate", "predict"));
  CHECK_FALSE(is_near("--", "--out"));
}

TEST_CASE("a huge number is not written with all its digits") {
  CHECK(fixed(0.69314, 4) == "0.6931");
  CHECK(fixed(-123456789, 1) == "-123456789.0");
  CHECK(fixed(5.1234e29, 2) == "5.12e+29");
  CHECK(fixed(std::numeric_limits<double>::infinity(), 4) == "inf");
}

TEST_CASE("CSV fields are split as RFC 4180 says") {
  CsvReader csv(
      "\xEF\xBB\xBF"
      "a,b,c\r\n\n\"x, y\",\"say \"\"no\"\"\",\n\"two\nlines\",1,2\n"
      "last",
      "t.csv");
  std::vector<std::string_view> fields;
  REQUIRE(csv.next(fields));
  CHECK(fields == std::vector<std::string_view>{"a", "b", "c"});
  REQUIRE(csv.next(fields));
  CHECK(csv.line() == 3);
  CHECK(fields == std::vector<std::string_view>{"x, y", "say \"no\"", ""});
  REQUIRE(csv.next(fields));
  CHECK(fields == std::vector<std::string_view>{"two\nlines", "1", "2"});
  CHECK(csv.line() == 4);
  REQUIRE(csv.next(fields));
  CHECK(csv.line() == 6);  // the record before it has two lines
  CHECK_FALSE(csv.next(fields));
  CHECK(csv_field("a,\"b") == "\"a,\"\"b\"");
}

TEST_CASE("what separates the columns of a table is seen in its first line") {
  for (const auto& [text, separator] :
       std::vector<std::pair<std::string, char>>{
           {"", ','},
           {"image\na;b\n", ','},
           {"image,a\nx;y;z", ','},
           {"\xEF\xBB\xBFimage;a\r\nx,1;0,5\n", ';'},
           {"image\ta,b\tc\n", '\t'},
           {"image,a;b\n", ','},
           {"\"a;b;c\",image\n", ','},
           {"Image Index;Labels;Original[Width,Height];Spacing[x,y]\n", ';'}}) {
    INFO(text);
    CHECK(separator_of(text) == separator);
  }
  CsvReader csv("a;b\n\"x;y\"\"\";1,5\r\n", "t.csv", ';');
  std::vector<std::string_view> fields;
  REQUIRE(csv.next(fields));
  REQUIRE(csv.next(fields));
  CHECK(fields == std::vector<std::string_view>{"x;y\"", "1,5"});
}

TEST_CASE("a quote that is not closed hides no rows") {
  CsvReader csv("a,b\n1,\"2\n3,4\n5,6\n", "t.csv");
  std::vector<std::string_view> fields;
  REQUIRE(csv.next(fields));
  const std::string text = error_of<DataError>([&] { csv.next(fields); });
  CHECK(text.find("t.csv:2: ") != std::string::npos);
}

TEST_CASE("what follows the quotes of a CSV field is not lost") {
  CsvReader csv("\"a\"b,c\r\n\"d\" \r\n\"e\"\rf,g\n\"h\"", "t.csv");
  std::vector<std::string_view> fields;
  REQUIRE(csv.next(fields));
  CHECK(fields == std::vector<std::string_view>{"ab", "c"});
  REQUIRE(csv.next(fields));
  CHECK(fields == std::vector<std::string_view>{"d "});
  REQUIRE(csv.next(fields));
  CHECK(fields == std::vector<std::string_view>{"e\rf", "g"});
  REQUIRE(csv.next(fields));
  CHECK(fields == std::vector<std::string_view>{"h"});
}

TEST_CASE("list files are read line by line") {
  CHECK(list_lines(" a \r\n\nb") == std::vector<std::string>{"a", "b"});
  using namespace std::string_view_literals;
  CHECK(list_lines(" a\0b\nc\0"sv) == std::vector<std::string>{" a", "b\nc"});
  CHECK(list_lines("a\0b"sv) == std::vector<std::string>{"a", "b"});
  CHECK(list_lines("\xEF\xBB\xBF"
                   "a\nb") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("an atomic write leaves the whole file or none") {
  const ScratchFolder folder;
  write_atomically(folder / "f", "one");
  write_atomically(folder / "f", "two");
  CHECK(read_text(folder / "f") == "two");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) ==
        1);
  CHECK(error_of<CheckpointError>([&] {
          write_atomically(folder / "no/such/f", "x");
        }).find("no/such") != std::string::npos);
  {
    OutputFile file(folder / "unfinished");
    file.write("half");
  }
  CHECK_FALSE(std::filesystem::exists(folder / "unfinished"));
}

TEST_CASE("a full disk is reported with what to do") {
  if (!std::filesystem::exists("/dev/full")) return;
  OutputFile file("/dev/full");
  const std::string text = error_of<CheckpointError>([&] { file.write("x"); });
  CHECK(text.find("No space left") != std::string::npos);
  CHECK(text.find("--out") != std::string::npos);
  OutputFile of_key("/dev/full", {}, "run.prometheus");
  const std::string other =
      error_of<CheckpointError>([&] { of_key.write("x"); });
  CHECK(other.ends_with("write elsewhere with run.prometheus"));
}

TEST_CASE("a file beyond ulimit -f is reported with what to do") {
  const ScratchFolder folder;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // as the program does
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string text = error_of<CheckpointError>(
      [&] { write_atomically(folder / "a", std::string(2000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(text.find("File too large") != std::string::npos);
  CHECK(text.find("(ulimit -f)") != std::string::npos);
}

TEST_CASE("sizes and times are written for people") {
  CHECK(readable_bytes(1536) == "1.5 KiB");
  CHECK(readable_s(3725) == "1h02m");
  CHECK(readable_s(187) == "3m07s");
  CHECK(readable_s(12.4) == "12s");
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(2, "rank") == "2 ranks");
}

TEST_CASE("a pipe can be read to its end, and a folder is no file") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], "a: 1\n", 5) == 5);
  close(ends[1]);
  CHECK(read_text("/dev/fd/" + std::to_string(ends[0])) == "a: 1\n");
  close(ends[0]);
  CHECK(error_of<AbsentError>([] {
          read_text("/tmp");
        }).find("Is a directory") != std::string::npos);
}

TEST_CASE("a planted pipe is not waited for") {
  const ScratchFolder folder;
  for (const char* name : {"pipe", "pipe.gz"}) {
    REQUIRE(mkfifo((folder / name).c_str(), 0600) == 0);
    CHECK(error_of<AbsentError>([&] {
            read_text(folder / name);
          }).find("is no regular file") != std::string::npos);
    CHECK(error_of<CheckpointError>([&] {
            AppendName{folder / name};
          }).find("is no regular file") != std::string::npos);
  }
  CHECK_FALSE(
      error_of<AbsentError>([&] { sha256_file(folder / "pipe"); }).empty());
  write_atomically(folder / "pipe", "new");
  CHECK(read_text(folder / "pipe") == "new");
}

TEST_CASE(
    "a planted link is replaced and not followed, and modes are final from the "
    "start") {
  const ScratchFolder folder;
  write_atomically(folder / "precious", "mine");
  std::filesystem::create_symlink(folder / "precious", folder / "out");
  write_atomically(folder / "out", "new", 0600);
  CHECK(read_text(folder / "precious") == "mine");
  CHECK(read_text(folder / "out") == "new");
  CHECK_FALSE(std::filesystem::is_symlink(folder / "out"));
  CHECK(std::filesystem::status(folder / "out").permissions() ==
        (std::filesystem::perms::owner_read |
         std::filesystem::perms::owner_write));
}

TEST_CASE("what is appended never goes through a planted link") {
  const ScratchFolder folder;
  for (const char* text : {"one\n", "two\n"}) {
    const AppendName file(folder / "log");
    std::ofstream(file.name(), std::ios::app) << text;
  }
  CHECK(read_text(folder / "log") == "one\ntwo\n");
  std::filesystem::create_symlink(folder / "log", folder / "link");
  CHECK(error_of<CheckpointError>([&] {
          AppendName{folder / "link"};
        }).find("link") != std::string::npos);
}

TEST_CASE("a private folder is nobody else's, and no link") {
  const ScratchFolder folder;
  make_private_folder(folder / "own");
  make_private_folder(folder / "own");
  std::filesystem::create_directory_symlink(folder / "own", folder / "link");
  CHECK_FALSE(error_of<CheckpointError>([&] {
                make_private_folder(folder / "link");
              }).empty());
  std::filesystem::permissions(folder / "own",
                               std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);
  CHECK_FALSE(error_of<CheckpointError>([&] {
                make_private_folder(folder / "own");
              }).empty());
}

TEST_CASE("what is absent and what does not answer are two kinds of error") {
  CHECK(error_of<AbsentError>([] {
          throw_unreadable("x", "p", ENOENT);
        }).find("[x] p") == 0);
  CHECK_FALSE(
      error_of<OutageError>([] { throw_unreadable("x", "p", EIO); }).empty());
  CHECK_FALSE(error_of<OutageError>([] {
                throw_unreadable("x", "p", ESTALE);
              }).empty());
  CHECK(error_of<OutageError>([] {
          throw_unreadable("x", "p", EMFILE);
        }).find("ulimit") != std::string::npos);
}

TEST_CASE("a gzip table that was cut off is no shorter table") {
  const ScratchFolder folder;
  const std::string path = folder / "t.csv.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  for (int i = 0; i < 5000; ++i) gzprintf(file, "%d,%d\n", i, i * 7919);
  gzclose(file);
  CHECK(read_text(path).ends_with("4999,39587081\n"));
  const auto size = std::filesystem::file_size(path);
  for (const uintmax_t cut :
       {size - 1, size - 8, size - 9, size / 2, uintmax_t{30}}) {
    std::filesystem::resize_file(path, cut);
    CHECK(error_of<DataError>([&] { read_text(path); }).find("cut off") !=
          std::string::npos);
  }
}

TEST_CASE("a gzip table that unpacks to a thousand times its size is refused") {
  const ScratchFolder folder;
  const std::string path = folder / "t.csv.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  const std::string zeros(size_t{1} << 20, '0');
  for (int i = 0; i < 40; ++i)
    gzwrite(file, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(file);
  CHECK(error_of<DataError>([&] {
          read_text(path);
        }).find("unpacks to more than 100 times its size") !=
        std::string::npos);
}

TEST_CASE("of a text of megabytes an error has the beginning and the hint") {
  const std::string cell(8'000'000, '\0');
  const std::string what =
      DataError("[x] t.csv:3: '" + cell + "' is no number. Hint: look").what();
  CHECK(what.size() < 5 * kLongestError);
  CHECK(what.starts_with("[x] t.csv:3: '\\x00"));
  CHECK(what.ends_with("is no number. Hint: look"));
  CHECK(what.find("bytes left out") != std::string::npos);
}

TEST_CASE(
    "what killed processes left of their files is removed, nothing else") {
  const ScratchFolder folder;
  const auto left = unforeseeable_name(folder / "report.html");
  const auto held = unforeseeable_name(folder / "held.html");
  folder.write(left.filename().string(), "half");
  folder.write(held.filename().string(), "still being written");
  const std::vector<std::string> others = {
      ".mine.partial", ".a.0123456789abcdeg.partial", "b.partial",
      "c.0123456789abcdef.partial"};
  for (const auto& name : others) folder.write(name, "mine");
  const int fd = ::open(held.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(fd, LOCK_EX | LOCK_NB) == 0);

  remove_left_partials(folder.path());
  CHECK_FALSE(std::filesystem::exists(left));
  CHECK(std::filesystem::exists(held));
  for (const auto& name : others) CHECK(std::filesystem::exists(folder / name));
  ::close(fd);
  remove_left_partials(folder.path());
  CHECK_FALSE(std::filesystem::exists(held));
  remove_left_partials(folder / "absent");
}

TEST_CASE("a file with the longest of names is written again") {
  const ScratchFolder folder;
  // Where the partial name ends, a character of two bytes is cut.
  std::string name(99, 'x');
  name += "\xC3\xA4" + std::string(255 - 101, 'y');
  for (const char* text : {"first", "second"}) {
    write_atomically(folder / name, text);
    CHECK(read_text(folder / name) == text);
  }
  const auto partial = unforeseeable_name(folder / name).filename().string();
  CHECK(partial.starts_with("." + std::string(99, 'x') + "."));
}

TEST_CASE("a folder that a killed process left is removed, one in use is not") {
  const ScratchFolder folder;
  const auto left = unforeseeable_name(folder / "exported");
  std::filesystem::create_directories(left / "vectors");
  std::filesystem::path used;
  {
    const PartialFolder mine(folder / "exported");
    used = mine.path();
    remove_left_partials(folder.path());
    CHECK_FALSE(std::filesystem::exists(left));
    CHECK(std::filesystem::is_directory(used));
  }
  CHECK_FALSE(std::filesystem::exists(used));
}

TEST_CASE("lines are what has an end") {
  CHECK(lines_of("a\n\nb\nrest") == std::vector<std::string>{"a", "", "b"});
  CHECK(lines_of("").empty());
}

TEST_CASE("the first bytes of a text cut no character") {
  CHECK(first_bytes("abc", 3) == "abc");
  CHECK(first_bytes("abc", 2) == "ab");
  CHECK(first_bytes("a\xc3\xa9z", 2) == "a");
  CHECK(first_bytes("a\xc3\xa9z", 3) == "a\xc3\xa9");
  CHECK(first_bytes(std::string(300, '\x80'), 200).empty());
}
