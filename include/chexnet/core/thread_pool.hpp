// A fixed group of threads that computes the tasks of one pass after another.
// The calling thread is thread 0 and works too. Helpers spin for a moment after
// a pass, because the next one usually follows within microseconds, then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace chexnet {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }
  // Called by thread 0 between its tasks, to let communication advance. It may
  // throw: the pass is finished first.
  void set_tick(std::function<void()> tick) { tick_ = std::move(tick); }

  // Calls work(task, thread) once for each task in [0, tasks), handed out in
  // order of request, and returns when all are done. `work` does not throw.
  // From one thread at a time, never nested.
  template <class Work>
  void run(int tasks, const Work& work) {
    run_erased(
        tasks,
        [](const void* w, int task, int thread) {
          (*static_cast<const Work*>(w))(task, thread);
        },
        &work);
  }

 private:
  using Call = void (*)(const void* work, int task, int thread);
  void run_erased(int tasks, Call call, const void* work);
  int next_task();
  void help(int thread, int spins_before_sleep);

  // Thread 0 sets it before it raises `pass_`, helpers read it after they saw
  // that.
  Call call_ = nullptr;
  const void* work_ = nullptr;
  int tasks_ = 0;
  std::atomic<int> next_ = 0;       // task
  std::atomic<int> busy_ = 0;       // helpers still in this pass
  std::atomic<uint32_t> pass_ = 0;  // the last pass that began
  std::atomic<bool> stop_ = false;
  std::function<void()> tick_;
  std::vector<std::thread> helpers_;
};

}  // namespace chexnet
