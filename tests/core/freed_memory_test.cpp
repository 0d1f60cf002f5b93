#include "chexnet/core/freed_memory.hpp"

#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// As MPI does for the buckets of one step.
void take_and_free() {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 6; ++i) {
    blocks.push_back(std::make_unique_for_overwrite<char[]>(4 << 20));
    std::memset(blocks.back().get(), i, 4 << 20);
  }
}

}  // namespace

TEST_CASE("memory that each step takes and frees stays with the process") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("skipped: a sanitizer has its own allocator");
#else
  keep_freed_memory();
  take_and_free();
  const int64_t before = page_faults();
  for (int step = 0; step < 5; ++step) take_and_free();
  CHECK(page_faults() - before < 1000);  // 6,144 a step where it went back
#endif
}
