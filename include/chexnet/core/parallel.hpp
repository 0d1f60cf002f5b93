// The same work for many indices, by several threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace chexnet {

// Calls work(i) once for each i in [0, count) from `threads` threads (at least
// one), in order of start. Meanwhile the calling thread calls `tick` some
// twenty times a second, and at the end; for progress. After the first
// exception, of work or tick, no index is handed out any more; it is rethrown
// when all threads have ended.
void parallel_for(
    size_t count, int threads, const std::function<void(size_t)>& work,
    const std::function<void()>& tick = [] {});

// The same with work(i, thread), thread in [0, max(1, threads)): for what each
// thread owns.
void parallel_for_by_thread(size_t count, int threads,
                            const std::function<void(size_t, size_t)>& work,
                            const std::function<void()>& tick);

// The same with work(i, scratch): memory that a thread keeps from index to
// index. One Scratch is made for each thread, and goes with the call.
template <class Scratch, class Work>
void parallel_for_with(
    size_t count, int threads, const Work& work,
    const std::function<void()>& tick = [] {}) {
  std::vector<Scratch> scratch(static_cast<size_t>(std::max(1, threads)));
  const auto with_scratch = [&](size_t i, size_t thread) {
    work(i, scratch[thread]);
  };
  parallel_for_by_thread(count, threads, with_scratch, tick);
}

}  // namespace chexnet
