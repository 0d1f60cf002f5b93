// Waiting for a number to change, also between processes. Not a mutex and a
// condition variable: those order two threads in both directions, and the
// thread sanitizer would then not see that an event is missing.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace fake_cuda {

// Returns when `word` is no longer `seen`, after 10 ms, or for no reason.
inline void wait_while(const std::atomic<uint32_t>& word, uint32_t seen) {
  const timespec limit{0, 10'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}
inline void wake_all(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace fake_cuda
