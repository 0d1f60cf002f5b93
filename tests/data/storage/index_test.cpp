// Index files are kept, found again, and never trusted.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "chexnet/data/storage/index_text.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

struct Archive {
  ScratchFolder folder;
  std::string path;
  std::string index;

  // Text refers back, so entries of a tar.gz have a window.
  explicit Archive(const std::string& suffix,
                   const std::string& content = "image bytes ") {
    for (int i = 0; i < 30; ++i) {
      std::string text;
      for (int k = 0; k < 3000; ++k)
        text += content + std::to_string(k % (7 + i));
      folder.write("in/" + std::to_string(i) + ".png", text);
    }
    path = (folder / ("x" + suffix)).string();
    index = path + ".index";
    pack();
  }
  void pack() const {
    const std::string command =
        "cd '" + (folder / "in").string() + "' && tar caf '" + path + "' *";
    REQUIRE(std::system(command.c_str()) == 0);
  }
  StoredFile file() const { return local_store()->list(path).front(); }
};

struct Read {
  std::vector<Entry> entries;
  bool from_index;
};

Read read(const StoredFile& file, ContainerKind kind) {
  const auto store = local_store();
  uint64_t pieces = 0;
  auto entries =
      container_entries(*store, file, kind, [&](uint64_t) { ++pieces; });
  return {std::move(entries), pieces == 0};
}

void write(const std::string& path, const std::string& text) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE(
    "an index with numbers that cannot be is ignored, and nothing is written "
    "outside") {
  const Archive archive(".tar.gz");
  const StoredFile file = archive.file();
  const auto honest = read(file, ContainerKind::kTarGz).entries;
  REQUIRE(read(file, ContainerKind::kTarGz).from_index);
  const std::vector<std::function<void(Entry&)>> forgeries = {
      [](Entry& e) {
        e.window = {{32768, 0x41}};
      },
      [](Entry& e) {
        e.window = {{65535, 0x41}};
      },
      [](Entry& e) { e.bit = 8; },
      [](Entry& e) { e.bit = -1; },
      [](Entry& e) { e.length = uint64_t{1} << 40; },
      [](Entry& e) { e.length = e.stored * 1033; },
      [](Entry& e) { e.skip = uint64_t{1} << 40; },
      [](Entry& e) { e.skip = ~uint64_t{0}; },
      [](Entry& e) { e.stored = uint64_t{1} << 40; },
      [](Entry& e) { e.offset = ~uint64_t{0}; },
      [&](Entry& e) { e.offset = file.size; }};
  for (size_t i = 0; i < forgeries.size(); ++i) {
    INFO(i);
    auto forged = honest;
    forgeries[i](forged[3]);
    write(archive.index, index_text(forged, ContainerKind::kTarGz, file));
    const Read again = read(file, ContainerKind::kTarGz);
    CHECK_FALSE(again.from_index);
    CHECK(again.entries == honest);
    CHECK(read(file, ContainerKind::kTarGz).from_index);  // and it was mended
  }
  // The last defence, should an entry come from elsewhere.
  Entry bad = honest[3];
  bad.window = {{40000, 1}};
  std::vector<std::byte> packed(bad.stored), content;
  CHECK_FALSE(error_of<DataError>([&] {
                inflate_member(packed, bad, "x", content);
              }).empty());
}

TEST_CASE("an index that others can write is not used") {
  const Archive archive(".tar");
  const StoredFile file = archive.file();
  read(file, ContainerKind::kTar);
  REQUIRE(read(file, ContainerKind::kTar).from_index);
  for (const fs::perms extra :
       {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(archive.index, extra, fs::perm_options::add);
    CHECK_FALSE(read(file, ContainerKind::kTar).from_index);
    CHECK(read(file, ContainerKind::kTar).from_index);
  }
  if (geteuid() == 0) {
    REQUIRE(chown(archive.index.c_str(), 65534, 65534) == 0);  // nobody
    CHECK_FALSE(read(file, ContainerKind::kTar).from_index);
  }
  // What is no regular file: a link, a folder.
  read(file, ContainerKind::kTar);
  fs::rename(archive.index, archive.folder / "moved");
  fs::create_symlink(archive.folder / "moved", archive.index);
  CHECK_FALSE(read(file, ContainerKind::kTar).from_index);
  fs::remove(archive.index);
  fs::create_directory(archive.index);
  CHECK(read(file, ContainerKind::kTar).entries.size() == 30);
}

TEST_CASE("whoever may read an archive may read its index") {
  const Archive archive(".tar");
  fs::permissions(archive.path, fs::perms(0664));
  const mode_t before = umask(077);
  read(archive.file(), ContainerKind::kTar);
  umask(before);
  struct stat info {};
  REQUIRE(stat(archive.index.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0644);  // but only its owner may write it
}

TEST_CASE(
    "an archive that was written again is indexed again, whatever its size") {
  const Archive archive(".tar", "image bytes ");
  const auto before = read(archive.file(), ContainerKind::kTar).entries;
  const StoredFile old = archive.file();
  for (int i = 0; i < 30; ++i) {
    const std::string name = "in/" + std::to_string(i) + ".png";
    const auto size = fs::file_size(archive.folder / name);
    archive.folder.write(name, std::string(size, 'z'));
  }
  archive.pack();
  CHECK(archive.file().size == old.size);
  CHECK(archive.file().version != old.version);
  const Read after = read(archive.file(), ContainerKind::kTar);
  CHECK_FALSE(after.from_index);
  CHECK(after.entries[0].offset == before[0].offset);
  CHECK(after.entries[0].crc32c != before[0].crc32c);
}

TEST_CASE("tabs and line ends in a member's name stay in their field") {
  const ScratchFolder folder;
  const std::string name = "a\tb\n0\t512\t9.png";
  folder.write("in/" + name, "content");
  const std::string path = (folder / "x.tar").string();
  REQUIRE(std::system(("cd '" + (folder / "in").string() + "' && tar cf '" +
                       path + "' *")
                          .c_str()) == 0);
  const StoredFile file = local_store()->list(path).front();
  const auto first = read(file, ContainerKind::kTar);
  const auto second = read(file, ContainerKind::kTar);
  REQUIRE(first.entries.size() == 1);
  CHECK(first.entries[0].name == name);
  CHECK(second.from_index);
  CHECK(second.entries == first.entries);
}

TEST_CASE(
    "runs that index the same archive at once do not disturb each other") {
  const Archive archive(".tar.gz");
  const StoredFile file = archive.file();
  std::atomic<int> right = 0;
  for (int round = 0; round < 5; ++round) {
    fs::remove(archive.index);
    std::vector<std::jthread> runs;
    for (int i = 0; i < 4; ++i)
      runs.emplace_back([&] {
        right += read(file, ContainerKind::kTarGz).entries.size() == 30;
      });
  }
  CHECK(right == 20);
  CHECK(read(file, ContainerKind::kTarGz).from_index);
  int files = 0;
  for ([[maybe_unused]] const auto& entry :
       fs::directory_iterator(archive.folder.path()))
    ++files;
  CHECK(files == 3);  // in, the archive, its index
}
