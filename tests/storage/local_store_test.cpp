#include <filesystem>

#include "chexnet/storage/store.hpp"
#include "support/catch.hpp"
#include "support/counting_store.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

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
  const auto files = local_store()->list(folder.path().string(), [&] { ++ticks; });
  // Each folder by its own name and through the link of the other.
  CHECK(files.size() == 4);
  CHECK(ticks < 30);
  // Many links to one folder: it is listed under some of its names only.
  for (int i = 0; i < 100; ++i)
    fs::create_directory_symlink("a", folder / ("link" + std::to_string(i)));
  CHECK(local_store()->list(folder.path().string()).size() <= 4 * Store::kMostNames);
}

TEST_CASE("a file that was written again has another version, a link to it the same inode") {
  const ScratchFolder folder;
  const std::string path = folder.write("x.pack", "one");
  fs::create_symlink("x.pack", folder / "link.pack");
  const auto store = local_store();
  const StoredFile before = store->list(path).front();
  CHECK(store->list((folder / "link.pack").string()).front().inode == before.inode);
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1));
  const StoredFile after = store->list(path).front();
  CHECK(after.version != before.version);
  CHECK(after.inode != before.inode);
}

TEST_CASE("no more memory is asked for than there are bytes") {
  const ScratchFolder folder;
  const std::string path = folder.write("x", std::string(1000, 'x'));
  CountingStore store;
  std::vector<std::byte> bytes;
  read_in_pieces(store, path, 100, std::uint64_t{1} << 40, bytes);
  CHECK(bytes.size() == 900);
  CHECK(store.largest <= 64 << 20);
}
