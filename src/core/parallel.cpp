// Indices are handed out one by one, as work on one may take long: `next` is
// the first that nobody took. A failure sets it to `count`, so that every
// thread ends with the index it has.
#include "chexnet/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace chexnet {

void parallel_for(size_t count, int threads,
                  const std::function<void(size_t)>& work,
                  const std::function<void()>& tick) {
  const auto any_thread = [&](size_t i, size_t) { work(i); };
  parallel_for_by_thread(count, threads, any_thread, tick);
}

void parallel_for_by_thread(size_t count, int threads,
                            const std::function<void(size_t, size_t)>& work,
                            const std::function<void()>& tick) {
  const int started = std::max(1, threads);
  std::atomic<size_t> next = 0;
  std::atomic<int> live = started;
  std::mutex mutex;  // guards failure
  std::exception_ptr failure;
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < started; ++t)
      running.emplace_back([&, thread = static_cast<size_t>(t)] {
        try {
          for (size_t i = 0; (i = next++) < count;) work(i, thread);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
          next = count;
        }
        --live;
      });
    // Short work is not kept waiting.
    try {
      for (int wait_ms = 1; live > 0; wait_ms = std::min(50, 2 * wait_ms)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
        tick();
      }
      tick();
    } catch (...) {
      next = count;
      throw;
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace chexnet
