#include "chexnet/data/storage/tar.hpp"

#include <zlib.h>

#include <cstdlib>
#include <map>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/data/storage/index_text.hpp"
#include "support/catch.hpp"
#include "support/counting_store.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// Files of many kinds: empty, tiny, texts that compress well, noise that does
// not, long names.
std::map<std::string, std::string> write_files(const ScratchFolder& folder) {
  std::map<std::string, std::string> files;
  Random random(3, Purpose::kTest, 9);
  const auto add = [&](const std::string& name, std::string content) {
    folder.write("in/" + name, content);
    files[name] = std::move(content);
  };
  add("images/empty.png", "");
  add("images/tiny.png", "x");
  for (int i = 0; i < 40; ++i) {
    std::string content;
    const auto size = random.below(90000);
    const uint32_t letters = i % 3 == 0 ? 256 : i % 3 == 1 ? 4 : 60;
    while (content.size() < size) {
      content += static_cast<char>(random.below(letters));
      // Far repeats, so that members refer back over their beginning.
      if (content.size() > 40 && random.below(50) == 0)
        content += content.substr(content.size() - 40, 30);
    }
    add("images/" + std::to_string(i) + (i == 7 ? std::string(150, 'n') : "") +
            ".png",
        content);
  }
  add("images/again.png", files["images/1.png"]);
  return files;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::vector<std::byte> bytes;
  read_bytes(path.string(), bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Each of `entries` has the content that `files` tells.
void check_contents(Store& store, const std::string& path, ContainerKind kind,
                    const std::vector<Entry>& entries,
                    const std::map<std::string, std::string>& files) {
  for (const auto& e : entries) {
    std::vector<std::byte> packed, content;
    INFO(path << " " << e.name);
    if (kind == ContainerKind::kTar) {
      const uint64_t bytes = e.skip + e.length;
      store.read(path, e.offset - e.skip, bytes, packed);
      CHECK(crc32c(packed) == e.crc32c);
      CHECK(e.skip >= 512);
      content.assign(packed.begin() + static_cast<ptrdiff_t>(e.skip),
                     packed.end());
    } else {
      store.read(path, e.offset, e.stored, packed);
      inflate_member(packed, e, path, content);
      CHECK(crc32c(content) == e.crc32c);
    }
    REQUIRE(files.contains(e.name));
    CHECK(std::string(reinterpret_cast<const char*>(content.data()),
                      content.size()) == files.at(e.name));
  }
}

void check_all(const std::string& path, ContainerKind kind,
               const std::map<std::string, std::string>& files) {
  const auto store = local_store();
  std::vector<std::byte> whole;
  read_bytes(path, whole);
  const StoredFile file{path, whole.size()};
  const auto none = [](uint64_t) {};
  const auto entries = kind == ContainerKind::kTar
                           ? tar_entries(*store, file, none)
                           : tar_gz_entries(*store, file, none);
  CHECK(entries.size() == files.size());
  CHECK(entries_of_text(index_text(entries, kind, file), "x") == entries);
  check_contents(*store, path, kind, entries, files);
}

}  // namespace

TEST_CASE("members of tar and tar.gz archives are read where they lie") {
  const ScratchFolder folder;
  const auto files = write_files(folder);
  const std::string in = (folder / "in").string(), out = folder.path().string();
  const auto shell = [&](const std::string& command) {
    INFO(command);
    REQUIRE(std::system(("cd " + in + " && " + command).c_str()) == 0);
  };
  shell("tar cf ../gnu.tar images && tar cf ../pax.tar --format=pax images");
  check_all(out + "/gnu.tar", ContainerKind::kTar, files);
  check_all(out + "/pax.tar", ContainerKind::kTar, files);
  for (const char* level : {"1", "6", "9"}) {
    shell("gzip -c -" + std::string(level) + " ../gnu.tar > ../images.tar.gz");
    check_all(out + "/images.tar.gz", ContainerKind::kTarGz, files);
  }
  // Several gzip members after each other, as parallel compressors write them,
  // then zeros.
  shell(
      "split -b 100000 ../gnu.tar ../part. && for p in ../part.*; do gzip -c "
      "$p; done > "
      "../many.tar.gz && head -c 1000 /dev/zero >> ../many.tar.gz");
  check_all(out + "/many.tar.gz", ContainerKind::kTarGz, files);
  const auto store = local_store();
  std::vector<std::byte> bytes;
  read_bytes(out + "/images.tar.gz", bytes);
  for (const size_t size : {bytes.size() / 2, bytes.size() - 30}) {
    const std::string path = folder.write(
        "cut.tar.gz",
        std::string(reinterpret_cast<const char*>(bytes.data()), size));
    CHECK_FALSE(error_of<DataError>([&] {
                  tar_gz_entries(*store, {path, size}, [](uint64_t) {});
                }).empty());
  }
  bytes[bytes.size() / 2] ^= std::byte{4};
  const std::string path = folder.write(
      "bad.tar.gz",
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  CHECK(error_of<DataError>([&] {
          tar_gz_entries(*store, {path, bytes.size()}, [](uint64_t) {});
        }).find("bad.tar.gz") != std::string::npos);
}

TEST_CASE("of a damaged archive the members before the damage can be read") {
  const ScratchFolder folder;
  const auto files = write_files(folder);
  const std::string in = (folder / "in").string();
  REQUIRE(
      std::system(("cd " + in +
                   " && tar cf ../x.tar --sort=name images && gzip -k ../x.tar")
                      .c_str()) == 0);
  for (const auto kind : {ContainerKind::kTar, ContainerKind::kTarGz}) {
    const bool is_tar = kind == ContainerKind::kTar;
    const std::string whole =
        bytes_of(folder / (is_tar ? "x.tar" : "x.tar.gz"));
    for (const double part : {0.1, 0.5, 0.9}) {
      const auto size =
          static_cast<size_t>(part * static_cast<double>(whole.size()));
      const std::string path = folder.write("cut", whole.substr(0, size));
      std::string damage;
      const auto note = [&](const std::string& message) { damage = message; };
      const auto store = local_store();
      const auto read = is_tar ? tar_entries : tar_gz_entries;
      const auto entries = read(
          *store, {path, size}, [](uint64_t) {}, note);
      CHECK(damage.find("cut off") != std::string::npos);
      CHECK(entries.size() < files.size());
      CHECK((part < 0.5 || !entries.empty()));
      check_contents(*store, path, kind, entries, files);
    }
  }
}

TEST_CASE(
    "an archive without its end mark is refused, one block of zeros is "
    "enough") {
  const ScratchFolder folder;
  folder.write("in/a.png", std::string(700, 'a'));
  folder.write("in/b.png", std::string(300, 'b'));
  REQUIRE(std::system(("cd " + (folder / "in").string() +
                       " && tar cf ../x.tar a.png b.png")
                          .c_str()) == 0);
  std::vector<std::byte> whole;
  read_bytes(folder / "x.tar", whole);
  const auto read = [&](size_t size) {
    const std::string path = folder.write(
        "cut.tar",
        std::string(reinterpret_cast<const char*>(whole.data()), size));
    return tar_entries(*local_store(), {path, size}, [](uint64_t) {}).size();
  };
  const size_t first = 512 + 1024, both = first + 512 + 512;
  for (const size_t size : {first, both})
    CHECK(error_of<DataError>([&] {
            read(size);
          }).find("without its end mark") != std::string::npos);
  CHECK(error_of<DataError>([&] { read(both + 100); }).find("cut off") !=
        std::string::npos);
  CHECK(read(both + 512) == 2);
}

TEST_CASE(
    "a tar.gz of many tiny members is read a few times, not once a member") {
  const ScratchFolder folder;
  for (int i = 0; i < 3000; ++i)
    folder.write("in/" + std::to_string(i) + ".png", std::to_string(i));
  REQUIRE(
      std::system(("cd " + folder.path().string() + " && tar czf x.tar.gz in")
                      .c_str()) == 0);
  const std::string path = (folder / "x.tar.gz").string();
  CountingStore store;
  const StoredFile file = store.list(path).front();
  const auto entries = tar_gz_entries(store, file, [](uint64_t) {});
  CHECK(entries.size() == 3000);
  CHECK(store.bytes <= 4 * file.size);
  for (const size_t i : {0u, 1u, 1500u, 2999u}) {
    const Entry& e = entries[i];
    std::vector<std::byte> packed, content;
    store.read(path, e.offset, e.stored, packed);
    inflate_member(packed, e, path, content);
    CHECK(crc32c(content) == e.crc32c);
    CHECK(e.name ==
          "in/" +
              std::string(reinterpret_cast<const char*>(content.data()),
                          content.size()) +
              ".png");
  }
}

TEST_CASE("members too large for an image are skipped") {
  const ScratchFolder folder;
  folder.write("in/a.png", "first");
  folder.write("in/huge.csv", "");
  std::filesystem::resize_file(folder / "in/huge.csv", kLargestImage + 1);
  folder.write("in/z.png", "last");
  REQUIRE(
      std::system(
          ("cd " + (folder / "in").string() +
           " && tar c --sort=name a.png huge.csv z.png | gzip -1 > ../x.tar.gz")
              .c_str()) == 0);
  const std::string path = (folder / "x.tar.gz").string();
  const auto store = local_store();
  const auto entries =
      tar_gz_entries(*store, store->list(path).front(), [](uint64_t) {});
  REQUIRE(entries.size() == 2);
  CHECK(entries[1].name == "z.png");
  std::vector<std::byte> packed, content;
  store->read(path, entries[1].offset, entries[1].stored, packed);
  inflate_member(packed, entries[1], path, content);
  CHECK(std::string(reinterpret_cast<const char*>(content.data()),
                    content.size()) == "last");
}

TEST_CASE("an image that is a link or sparse is told, behind the others") {
  const ScratchFolder folder;
  folder.write("in/a.png", "first");
  folder.write("in/z.png", "last");
  const auto shell = [&](const std::string& command) {
    INFO(command);
    REQUIRE(std::system(("cd " + (folder / "in").string() + " && " + command)
                            .c_str()) == 0);
  };
  // Nine pieces: the list of them goes on after the member's header.
  shell(
      "ln a.png hard.png && ln -s a.png soft.JPG && ln -s a.png soft.txt && "
      "for i in 1 2 3 4 5 6 7 8 9; do printf x | dd of=s.png bs=1 conv=notrunc "
      "seek=$((i * 65536)) 2>/dev/null || exit 1; done");
  const std::string sparse = "--sparse --hole-detection=raw -cf ../x.tar ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"tar -cf ../x.tar a.png hard.png z.png", "hard.png is a hard link"},
      {"tar -cf ../x.tar a.png soft.JPG z.png", "soft.JPG is a symbolic link"},
      {"tar -cf ../x.tar a.png soft.txt z.png", ""},
      {"tar --format=gnu " + sparse + "a.png s.png z.png",
       "s.png is a sparse member"},
      {"tar --format=posix " + sparse + "a.png s.png z.png",
       "s.png is a sparse member"},
      {"tar -cf ../x.tar a.png hard.png soft.JPG z.png",
       "hard.png is a hard link (and 1 more such)"}};
  for (const auto& [command, what] : cases) {
    shell(command + " && gzip -kf ../x.tar");
    for (const char* name : {"x.tar", "x.tar.gz"}) {
      const auto store = local_store();  // it keeps files open
      const auto read =
          std::string(name) == "x.tar" ? tar_entries : tar_gz_entries;
      std::string damage;
      const auto entries = read(
          *store, store->list((folder / name).string()).front(),
          [](uint64_t) {},
          [&](const std::string& message) { damage = message; });
      INFO(command << " " << name << ": " << damage);
      CHECK(damage.find(what) != std::string::npos);
      CHECK(damage.empty() == what.empty());
      REQUIRE(entries.size() == 2);
      CHECK(entries[1].name == "z.png");
    }
  }
}

TEST_CASE("a damaged index file is noticed") {
  const std::vector<Entry> entries = {
      {.name = "a.png", .offset = 512, .length = 9, .window = {}}};
  const std::string good =
      index_text(entries, ContainerKind::kTar, {"a.tar", 2048});
  CHECK(entries_of_text(good, "x.index") == entries);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    INFO(i);
    CHECK_FALSE(
        error_of<DataError>([&] { entries_of_text(bad, "x.index"); }).empty());
  }
}
