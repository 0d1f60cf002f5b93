#include "chexnet/core/thread_pool.hpp"

#include <stdexcept>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE(
    "a thread_pool does each task of each pass once, and passes see each "
    "other's results") {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool thread_pool(threads);
    CHECK(thread_pool.size() == threads);
    std::vector<int> values(97, 0);
    std::vector<char> seen(static_cast<size_t>(threads), 0);
    for (int pass = 1; pass <= 200; ++pass)
      thread_pool.run(97, [&](int task, int thread) {
        const auto t = static_cast<size_t>(task);
        // The neighbor's value of the pass before, whoever computed it.
        values[t] += pass;
        seen[static_cast<size_t>(thread)] = 1;
      });
    CHECK(values == std::vector<int>(97, 200 * 201 / 2));
    // Of several a thread may come too late for each task; one does all.
    CHECK((threads > 1 || seen[0] == 1));
    thread_pool.run(0, [&](int, int) { values[0] = -1; });
    CHECK(values[0] == 200 * 201 / 2);
  }
}

TEST_CASE(
    "the tick of a thread_pool is called between tasks and may throw without "
    "losing a task") {
  ThreadPool thread_pool(2);
  int ticks = 0;
  thread_pool.set_tick([&] {
    if (++ticks == 2) throw std::runtime_error("link lost");
  });
  std::vector<int> done(50, 0);
  const auto pass = [&] {
    thread_pool.run(50,
                    [&](int task, int) { ++done[static_cast<size_t>(task)]; });
  };
  // A pass may be done by the helper alone, so there are as many as it takes.
  while (ticks < 2) {
    try {
      pass();
    } catch (const std::runtime_error& e) {
      CHECK(std::string(e.what()) == "link lost");
      ticks = 100;
    }
  }
  CHECK(ticks == 100);
  const int before = done[0];
  thread_pool.set_tick({});
  pass();
  CHECK(done == std::vector<int>(50, before + 1));
}
