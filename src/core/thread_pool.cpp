// One pass: thread 0 stores the work, raises pass_ (release), and takes tasks
// itself; each helper that sees the new number (acquire) takes tasks from next_
// until there are none, then lowers busy_. Thread 0 returns when busy_ is 0, so
// no helper reads call_ or work_ of a pass that is over.
#include "chexnet/core/thread_pool.hpp"

#include <cassert>
#include <exception>

namespace chexnet {
namespace {

// Longer than the serial work between two passes, far shorter than a time
// slice.
constexpr int kSpins = 20'000;
constexpr int kSpinsWhenCrowded = 50;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int spins_before_sleep =
      threads > static_cast<int>(std::thread::hardware_concurrency())
          ? kSpinsWhenCrowded
          : kSpins;
  for (int t = 1; t < threads; ++t)
    helpers_.emplace_back(
        [this, t, spins_before_sleep] { help(t, spins_before_sleep); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  pass_.fetch_add(1, std::memory_order_release);
  pass_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

int ThreadPool::next_task() {
  return next_.fetch_add(1, std::memory_order_relaxed);
}

void ThreadPool::run_erased(int tasks, Call call, const void* work) {
  assert(busy_.load(std::memory_order_relaxed) == 0);  // never nested
  call_ = call;
  work_ = work;
  tasks_ = tasks;
  next_.store(0, std::memory_order_relaxed);
  const bool alone = helpers_.empty() || tasks <= 1;
  if (!alone) {
    busy_.store(static_cast<int>(helpers_.size()), std::memory_order_relaxed);
    pass_.fetch_add(1, std::memory_order_release);
    pass_.notify_all();
  }
  std::exception_ptr failure;
  for (int task = 0; (task = next_task()) < tasks;) {
    call(work, task, 0);
    if (tick_ == nullptr || failure != nullptr) continue;
    try {
      tick_();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (!alone)
    for (int spins = 0; busy_.load(std::memory_order_acquire) > 0;) {
      if (++spins < kSpins) {
        pause_briefly();
      } else {
        std::this_thread::yield();
      }
    }
  if (failure != nullptr) std::rethrow_exception(failure);
}

void ThreadPool::help(int thread, int spins_before_sleep) {
  uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; pass_.load(std::memory_order_acquire) == seen;
         ++spins) {
      if (spins < spins_before_sleep)
        pause_briefly();
      else
        pass_.wait(seen, std::memory_order_acquire);
    }
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    for (int task = 0; (task = next_task()) < tasks_;)
      call_(work_, task, thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace chexnet
