#include "chexnet/train/run/remembered_check.hpp"

#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "chexnet/core/user_cache.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

// This process's cache folder is `path`.
struct CacheIn {
  explicit CacheIn(const fs::path& path) {
    setenv("XDG_CACHE_HOME", path.c_str(), 1);
  }
  ~CacheIn() { unsetenv("XDG_CACHE_HOME"); }
  CacheIn(const CacheIn&) = delete;
  CacheIn& operator=(const CacheIn&) = delete;
};

fs::path only_file(const fs::path& folder) {
  fs::path found;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    found = entry.path();
    ++files;
  }
  CHECK(files == 1);
  return found;
}

}  // namespace

TEST_CASE("a file too large to be a result is not read, and proves nothing") {
  const ScratchFolder folder;
  const CacheIn cache(folder.path());
  const RememberedCheck check("self-test", "GPU A");
  check.remember("worst 1e-6");
  REQUIRE(check.passed());
  const fs::path file = only_file(user_cache_folder("self-test"));
  fs::resize_file(file, fs::file_size(file) + (1 << 20));
  CHECK_FALSE(check.passed());
}

TEST_CASE("a check that passed is known to others of its subject alone") {
  const ScratchFolder folder;
  const CacheIn cache(folder.path());
  const RememberedCheck check("self-test", "GPU A\ndriver 580");
  CHECK_FALSE(check.passed());
  check.remember("worst 1e-6");
  CHECK(check.passed());
  CHECK(RememberedCheck("self-test", "GPU A\ndriver 580").passed());
  CHECK_FALSE(RememberedCheck("self-test", "GPU A\ndriver 590").passed());
  CHECK_FALSE(RememberedCheck("other", "GPU A\ndriver 580").passed());
}

TEST_CASE("what is cut off, or of another subject, proves nothing") {
  const ScratchFolder folder;
  const CacheIn cache(folder.path());
  const RememberedCheck check("self-test", "GPU A");
  check.remember("all");
  const fs::path file = only_file(user_cache_folder("self-test"));
  fs::resize_file(file, 8);
  CHECK_FALSE(check.passed());
  std::ofstream(file) << "GPU B\npassed\n";
  CHECK_FALSE(check.passed());
}

TEST_CASE("ranks that pass at once leave one whole file") {
  const ScratchFolder folder;
  const CacheIn cache(folder.path());
  const RememberedCheck check("self-test", std::string(100'000, 'x'));
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 8; ++rank)
      ranks.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          check.remember("all");
          if (!check.passed()) throw std::logic_error("half a file was seen");
        }
      });
  }
  CHECK(check.passed());
  only_file(user_cache_folder("self-test"));
}

TEST_CASE("where nothing can be kept, nothing fails") {
  const ScratchFolder folder;
  const std::string file = folder.write("no-folder", "");
  const CacheIn cache(file);
  const RememberedCheck check("self-test", "GPU A");
  check.remember("all");
  CHECK_FALSE(check.passed());
}
