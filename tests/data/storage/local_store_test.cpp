// A local store when files are gone, come back, or are no files.
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "chexnet/core/error.hpp"
#include "chexnet/data/storage/store.hpp"
#include "support/catch.hpp"
#include "support/counting_store.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

const ReadOptions kKnown{.stop = {}, .was_there = true};

std::string text_in(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("links that make loops end") {
  const ScratchFolder folder;
  folder.write("a/1.png", "1");
  folder.write("b/2.png", "2");
  fs::create_directory_symlink(".", folder / "a/self");
  fs::create_directory_symlink(".", folder / "a/again");
  fs::create_directory_symlink("../b", folder / "a/to_b");
  fs::create_directory_symlink("../a", folder / "b/to_a");
  fs::create_symlink("nowhere", folder / "a/dangling.png");
  int ticks = 0;
  const auto files =
      local_store()->list(folder.path().string(), [&] { ++ticks; });
  // Each folder by its name and through the link of the other.
  CHECK(files.size() == 4);
  CHECK(ticks < 30);
  // Many links to one folder: it is listed under some of its names only.
  for (int i = 0; i < 100; ++i)
    fs::create_directory_symlink("a", folder / ("link" + std::to_string(i)));
  CHECK(local_store()->list(folder.path().string()).size() <=
        4 * Store::kMostNames);
}

TEST_CASE(
    "a file that was written again has another version, a link to it the same "
    "inode") {
  const ScratchFolder folder;
  const std::string path = folder.write("x.pack", "one");
  fs::create_symlink("x.pack", folder / "link.pack");
  const auto store = local_store();
  const StoredFile before = store->list(path).front();
  CHECK(store->list((folder / "link.pack").string()).front().inode ==
        before.inode);
  fs::last_write_time(path,
                      fs::last_write_time(path) + std::chrono::nanoseconds(1));
  const StoredFile after = store->list(path).front();
  CHECK(after.version != before.version);
  CHECK(after.inode != before.inode);
}

TEST_CASE("no more memory is asked for than there are bytes") {
  const ScratchFolder folder;
  const std::string path = folder.write("x", std::string(1000, 'x'));
  CountingStore store;
  std::vector<std::byte> bytes;
  read_in_pieces(store, path, 100, uint64_t{1} << 40, bytes);
  CHECK(bytes.size() == 900);
  CHECK(store.largest <= 64 << 20);
}

TEST_CASE("a file whose mount went away is read when it is back") {
  const ScratchFolder folder;
  const std::string path = folder.write("mount/a.png", "pixels");
  const auto store = local_store(3600);
  std::vector<std::byte> bytes;
  fs::rename(folder / "mount", folder / "away");
  const std::jthread mender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    fs::rename(folder / "away", folder / "mount");
  });
  SECTION("whole") {
    store->read_whole(path, bytes, kKnown);
    CHECK(text_in(bytes) == "pixels");
  }
  SECTION("in part") {
    store->read(path, 2, 3, bytes, kKnown);
    CHECK(text_in(bytes) == "xel");
  }
}

TEST_CASE("what is gone for long is an outage, what never was is absent") {
  const ScratchFolder folder;
  const auto store = local_store(0.05);
  std::vector<std::byte> bytes;
  const std::string path = (folder / "a.png").string();
  CHECK(error_of<OutageError>([&] {
          store->read_whole(path, bytes, kKnown);
        }).find("was there when the run began, and is gone") !=
        std::string::npos);
  CHECK(error_of<AbsentError>([&] {
          store->read_whole(path, bytes);
        }).find("No such file") != std::string::npos);
  CHECK(error_of<AbsentError>([&] {
          store->list(path);
        }).find("No such file") != std::string::npos);
}

TEST_CASE("nobody waits for a file after a stop") {
  const ScratchFolder folder;
  const auto store = local_store(1e6);
  std::vector<std::byte> bytes;
  std::stop_source stop;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  CHECK_THROWS_AS(
      store->read_whole((folder / "a.png").string(), bytes,
                        {.stop = stop.get_token(), .was_there = true}),
      OutageError);
}

TEST_CASE("a pipe, a device, a folder and a file of any size are no images") {
  const ScratchFolder folder;
  const auto store = local_store();
  const auto error = [&](const std::string& name) {
    std::vector<std::byte> bytes;
    return error_of<DataError>(
        [&] { store->read_whole((folder / name).string(), bytes, kKnown); });
  };
  REQUIRE(::mkfifo((folder / "pipe.png").c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", folder / "zero.png");
  fs::create_directory(folder / "folder.png");
  for (const char* name : {"pipe.png", "zero.png", "folder.png"})
    CHECK(error(name).find("is no regular file") != std::string::npos);
  folder.write("cut.png", "x");
  CHECK(error(std::string("cut.png\0b.png", 13)).find("holds a NUL") !=
        std::string::npos);
  folder.write("huge.png", "");
  fs::resize_file(folder / "huge.png", kLargestWhole + 1);
  CHECK(error("huge.png").find("more than is read at once") !=
        std::string::npos);
}
