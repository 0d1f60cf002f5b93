#include "chexnet/core/plain_text.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "chexnet/core/file_lock.hpp"
#include "chexnet/core/text_table.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("names are shown without anything that a terminal obeys") {
  CHECK(printable("a\x1b[31mred.png") == "a\\x1b[31mred.png");
  CHECK(printable("line\nend\ttab\r") == "line\\x0aend\\x09tab\\x0d");
  CHECK(printable("line\nend\ttab", "\n\t") == "line\nend\ttab");
  CHECK(printable("\xc2\x9b"
                  "31m\x7f") == "\\x9b31m\\x7f");
  CHECK(printable("Größe \\x41 €.png") == "Größe \\x41 €.png");
  // Marks that turn the order of letters around, and U+2028 and 2029.
  CHECK(printable("a\u202Egnp.exe") == "a\\u202egnp.exe");
  CHECK(printable("\u061C\u200E\u200F\u2028\u202A\u2066\u2069") ==
        "\\u061c\\u200e\\u200f\\u2028\\u202a\\u2066\\u2069");
  CHECK(printable("\u200D\u2010\u2027\u202F\u2065\u206A שלום \xe2\x80") ==
        "\u200D\u2010\u2027\u202F\u2065\u206A שלום \xe2\x80");
}

TEST_CASE("names in tables are shown so, too") {
  CHECK(aligned({{"run", "r\u202Ex\n"}}) == "  run  r\\u202ex\\x0a");
  CHECK(columns({{"image"}, {"a\x1b.png"}}) == "image\na\\x1b.png\n");
}

TEST_CASE("any name comes back from a field of a text file") {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  for (const std::string& name :
       {every, std::string("a\\x09b"), std::string("\\"), std::string("\\x"),
        std::string("tab\there\nand there")}) {
    const std::string field = escaped(name);
    CHECK(field.find_first_of("\t\n") == std::string::npos);
    CHECK(unescaped(field) == name);
  }
}

TEST_CASE("one process at a time holds a file lock, and nothing stays of it") {
  const ScratchFolder folder;
  const auto path = folder / ".x.lock";
  {
    const auto lock = FileLock::try_take(path);
    REQUIRE(lock);
    CHECK_FALSE(FileLock::try_take(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(FileLock::try_take(path));
  // A planted link is not followed.
  std::filesystem::create_symlink(folder / "victim", path);
  CHECK_FALSE(
      error_of<CheckpointError>([&] { FileLock::try_take(path); }).empty());
  CHECK_FALSE(std::filesystem::exists(folder / "victim"));
}
