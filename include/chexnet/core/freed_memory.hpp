// What the C library does with memory that is given back to it.
#pragma once

namespace chexnet {

// From here on up to 64 MB at the end of the heap stay with this process, and
// blocks below 32 MB come from there. Once, before there are threads. Nothing
// where the environment (MALLOC_…, GLIBC_TUNABLES) has its own word on it, or
// where the C library is another one.
void keep_freed_memory();

}  // namespace chexnet
