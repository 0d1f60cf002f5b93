// Copies on the node's disk: of the right content, and nobody else's.
#include "chexnet/data/stage.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "chexnet/core/read_file.hpp"
#include "chexnet/data/image_source.hpp"
#include "data/staged_copy.hpp"
#include "support/catch.hpp"
#include "support/container_set.hpp"
#include "support/counting_store.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

constexpr int kStagedSide = 8;

// A pack in which every pixel of image i has the value grays[i].
void write_pack(const std::string& path, const std::vector<uint8_t>& grays) {
  PackShape shape{kStagedSide, ResizeKind::kArea, {}};
  for (size_t i = 0; i < grays.size(); ++i)
    shape.names.push_back(std::to_string(i) + ".png");
  PackWriter::prepare(path, shape);
  PackWriter writer(path, shape);
  for (size_t i = 0; i < grays.size(); ++i)
    writer.write(i, std::vector<uint8_t>(kStagedSide * kStagedSide, grays[i]),
                 {});
  writer.finish();
}

ImageIndex index_of(const std::string& path, Stores& stores) {
  std::vector<Container> containers;
  auto found = find_images({path}, stores, containers);
  return ImageIndex::of_found(std::move(found), std::move(containers));
}

int gray_of(const ImageSource& source, uint32_t row) {
  FetchedImage fetched;
  source.fetch(row, fetched);
  return std::to_integer<int>(fetched.bytes[0]);
}

fs::path root_in(const ScratchFolder& folder) {
  return folder / ("chexnet-stage-" + std::to_string(geteuid()));
}

}  // namespace

TEST_CASE(
    "a pack that was written again is never served from the copy of the old "
    "one") {
  const ScratchFolder folder;
  const ScratchFolder node;
  const std::string path = (folder / "x.pack").string();
  const auto comm = solo_communicator();
  std::string copies[2];
  for (const int turn : {0, 1}) {
    write_pack(path, turn == 0 ? std::vector<uint8_t>{10, 20}
                               : std::vector<uint8_t>{20, 10});
    Stores stores;
    const ImageSource source(
        staged(index_of(path, stores),
               {*StageChoice::parse(node.path().string())}, stores, *comm),
        stores);
    copies[turn] = source.index().containers()[0].path;
    CHECK(gray_of(source, 0) == (turn == 0 ? 10 : 20));
  }
  CHECK(copies[0] != copies[1]);
}

TEST_CASE("a pack that is written again while a run starts is noticed") {
  const ScratchFolder folder;
  const ScratchFolder node;
  const std::string path = (folder / "x.pack").string();
  write_pack(path, {10, 20});
  Stores stores;
  const ImageIndex index = index_of(path, stores);
  const auto comm = solo_communicator();
  staged(index, {*StageChoice::parse(node.path().string())}, stores, *comm);
  write_pack(path, {20, 10});
  Stores fresh;
  CHECK(error_of<DataError>([&] {
          ImageSource(index, fresh);
        }).find("written again") != std::string::npos);
  CHECK(error_of<DataError>([&] {
          staged(index, {*StageChoice::parse(node.path().string())}, fresh,
                 *comm);
        }).find("written again") != std::string::npos);
}

TEST_CASE(
    "a staging that was killed goes on where it stopped, and mends what is "
    "wrong") {
  const ScratchFolder folder;
  const ScratchFolder node;
  constexpr uint64_t kPiece = 8 << 20;
  std::string content;
  for (uint64_t i = 0; content.size() < 3 * kPiece + 5; ++i)
    content += std::to_string(i * i);
  content.resize(3 * kPiece + 5);
  const std::string path = folder.write("x.tar", content);
  CountingStore store;
  const StoredFile file = store.list(path).front();
  const Container source{ContainerKind::kTar, path, file.size, file.version,
                         file.inode};
  const auto none = [](uint64_t) {};
  const auto copied = [&] {
    StagedCopy copy(node.path(), source);
    uint64_t bytes = 0;
    const uint64_t missing = copy.check([] {});
    copy.complete(store, [&](uint64_t n) { bytes += n; });
    CHECK(bytes == missing);
    CHECK(read_text(copy.path()) == content);
    return bytes;
  };
  store.fails_from = 2 * kPiece;
  StagedCopy first(node.path(), source);
  first.check([] {});
  CHECK_FALSE(
      error_of<OutageError>([&] { first.complete(store, none); }).empty());
  CHECK_FALSE(fs::exists(first.path()));
  store.fails_from = std::numeric_limits<uint64_t>::max();
  CHECK(copied() == kPiece + 5);
  CHECK(copied() == 0);
  // A disk that forgot a byte.
  {
    std::fstream damaged(first.path(),
                         std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(kPiece + 100);
    damaged.put('!');
  }
  CHECK(copied() == kPiece);
  // An unfinished copy of an older content is removed.
  fs::rename(first.path(), first.path().string() + ".part");
  Container newer = source;
  newer.version += "1";
  StagedCopy next(node.path(), newer);
  next.check([] {});
  next.complete(store, none);
  CHECK_FALSE(fs::exists(first.path().parent_path()));
}

TEST_CASE("staging trusts no place that others made") {
  const ScratchFolder folder;
  const std::string path = (folder / "x.pack").string();
  write_pack(path, {10, 20});
  Stores stores;
  const ImageIndex index = index_of(path, stores);
  const auto comm = solo_communicator();
  const auto refused = [&](const ScratchFolder& node) {
    return error_of<DataError>([&] {
      staged(index, {*StageChoice::parse(node.path().string())}, stores, *comm);
    });
  };
  {
    const ScratchFolder node;
    fs::create_directory(root_in(node));
    fs::permissions(root_in(node), fs::perms(0777));
    CHECK(refused(node).find("cannot be trusted") != std::string::npos);
  }
  {
    const ScratchFolder node;
    fs::create_directory(node / "elsewhere");
    fs::create_directory_symlink("elsewhere", root_in(node));
    CHECK(refused(node).find("cannot be trusted") != std::string::npos);
    CHECK(fs::is_empty(node / "elsewhere"));
  }
  const ScratchFolder node;
  CHECK(refused(node).empty());
  CHECK((fs::status(root_in(node)).permissions() & fs::perms(0777)) ==
        fs::perms(0700));
}

TEST_CASE("two jobs of a user on one node wait for each other") {
  const ScratchFolder folder;
  const ScratchFolder node;
  const std::string path = (folder / "x.pack").string();
  write_pack(path, std::vector<uint8_t>(5000, 7));
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> jobs;
    for (int i = 0; i < 3; ++i)
      jobs.emplace_back([&] {
        Stores stores;
        const auto comm = solo_communicator();
        const ImageSource source(
            staged(index_of(path, stores),
                   {*StageChoice::parse(node.path().string())}, stores, *comm),
            stores);
        right += gray_of(source, 4999) == 7 ? 1 : 0;
      });
  }
  CHECK(right == 3);
}

TEST_CASE("staging copies once per node, checks what is there and mends it") {
  auto& c = containers();
  const ScratchFolder folder;
  const ImageIndex index =
      ImageIndex::scan(c.manifest, c.rows, {c.places["pack"]}, c.stores);
  std::array<std::string, 3> copies;
  ThreadWorld(3).run([&](Communicator& comm) {
    copies[static_cast<size_t>(comm.rank())] =
        staged(index, {*StageChoice::parse(folder.path().string())}, c.stores,
               comm)
            .containers()[0]
            .path;
  });
  const std::string copy = copies[0];
  CHECK((copies[1] == copy && copies[2] == copy));
  CHECK(copy.starts_with(folder.path().string()));
  std::vector<std::byte> bytes, wanted;
  read_bytes(c.places["pack"], wanted);
  read_bytes(copy, bytes);
  CHECK(bytes == wanted);
  const auto first_written = fs::last_write_time(copy);
  const auto comm = solo_communicator();
  staged(index, {*StageChoice::parse(folder.path().string())}, c.stores, *comm);
  CHECK(fs::last_write_time(copy) == first_written);
  {
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5000);
    file.put('!');
  }
  staged(index, {*StageChoice::parse(folder.path().string())}, c.stores, *comm);
  read_bytes(copy, bytes);
  CHECK(bytes == wanted);
  CHECK(staged(index, {*StageChoice::parse("off")}, c.stores, *comm) == index);
  // It lies on a local disk already.
  CHECK(staged(index, {*StageChoice::parse("auto")}, c.stores, *comm) == index);
  CHECK(error_of<DataError>([&] {
          staged(index, {*StageChoice::parse("/proc/nowhere")}, c.stores,
                 *comm);
        }).find("/proc/nowhere") != std::string::npos);
}
