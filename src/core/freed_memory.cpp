// glibc raises both limits by itself, to the largest block that was freed and
// twice that. So its behavior depended on a rank's past: one that had written a
// checkpoint (28 MB) kept the memory that MPI takes and frees for the buckets
// of a step, 27 MB in pieces of 4; the others gave it back, and had 6,800 page
// faults in the next step.
#include "chexnet/core/freed_memory.hpp"

#include <malloc.h>

#include <cstdlib>
#include <initializer_list>

namespace chexnet {

void keep_freed_memory() {
#ifdef __GLIBC__
  for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
                           "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"})
    if (std::getenv(name) != nullptr) return;
  constexpr int kMmapThreshold = 32 << 20;  // the most that glibc takes
  mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
  mallopt(M_TRIM_THRESHOLD, 2 * kMmapThreshold);
#endif
}

}  // namespace chexnet
