// The same work for many indices, by several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace chexnet {

// Calls work(i) once for each i in [0, count) from `threads` threads (at least one), in order of
// start. Meanwhile the calling thread calls `tick` some twenty times a second, and at the end; for
// progress. After the first exception, of work or tick, no index is handed out any more; it is
// rethrown when all threads have ended.
void parallel_for(
    std::size_t count, int threads, const std::function<void(std::size_t)>& work,
    const std::function<void()>& tick = [] {});

}  // namespace chexnet
