#include "chexnet/core/parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("each index is worked on once, and the caller hears of it") {
  for (const int threads : {0, 1, 3, 50}) {
    std::vector<std::atomic<int>> seen(20);
    int ticks = 0;
    parallel_for(
        20, threads, [&](size_t i) { ++seen[i]; }, [&] { ++ticks; });
    for (const auto& n : seen) CHECK(n == 1);
    CHECK(ticks > 0);
  }
}

TEST_CASE(
    "the first failure of a thread reaches the caller and ends the rest") {
  std::atomic<int> worked = 0;
  CHECK_THROWS_AS(parallel_for(1'000'000, 3,
                               [&](size_t i) {
                                 ++worked;
                                 if (i == 10) throw std::runtime_error("ten");
                               }),
                  std::runtime_error);
  CHECK(worked < 1'000'000);
}

TEST_CASE("each thread has a scratch of its own, kept from index to index") {
  struct Scratch {
    std::vector<size_t> seen;
    bool in_use = false;
  };
  std::atomic<size_t> clashes = 0;
  std::atomic<size_t> longest = 0;
  parallel_for_with<Scratch>(1000, 3, [&](size_t i, Scratch& scratch) {
    clashes += scratch.in_use ? 1 : 0;
    scratch.in_use = true;
    scratch.seen.push_back(i);
    size_t most = longest;
    while (scratch.seen.size() > most &&
           !longest.compare_exchange_weak(most, scratch.seen.size())) {
    }
    scratch.in_use = false;
  });
  CHECK(clashes == 0);
  CHECK(longest >= 334);  // of three, one has at least a third
}
