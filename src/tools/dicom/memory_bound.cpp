#include "memory_bound.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "chexnet/core/sanitized.hpp"

namespace chexnet {
namespace {

bool refused = false;  // since the last bound was set

void refuse() {
  refused = true;
  throw std::bad_alloc();
}

// 0: not known.
rlim_t address_space() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return static_cast<rlim_t>(pages) *
         static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

MemoryBound::MemoryBound(int64_t bytes)
    : handler_before_(std::set_new_handler(refuse)) {
  refused = false;
  ::getrlimit(RLIMIT_AS, &before_);
  const rlim_t now = kSanitized ? 0 : address_space();
  if (now == 0) return;
  rlimit bound = before_;
  bound.rlim_cur = std::min(before_.rlim_cur, now + static_cast<rlim_t>(bytes));
  ::setrlimit(RLIMIT_AS, &bound);
}

MemoryBound::~MemoryBound() {
  ::setrlimit(RLIMIT_AS, &before_);
  std::set_new_handler(handler_before_);
}

bool MemoryBound::reached() const { return refused; }

}  // namespace chexnet
