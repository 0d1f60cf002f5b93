// How much memory the parser of one file may take.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <new>

namespace chexnet {

// While it lives, this process may have `bytes` more of address space than
// before, or than its hard limit allows; what asks for more gets
// std::bad_alloc. One at a time, and not for threads that others started.
// The sanitizers' own memory has no bound: there it does nothing.
class MemoryBound {
 public:
  explicit MemoryBound(int64_t bytes);
  ~MemoryBound();
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;

  // Whether something was refused, also where a library kept that to itself.
  bool reached() const;

 private:
  rlimit before_{};
  std::new_handler handler_before_;
};

}  // namespace chexnet
