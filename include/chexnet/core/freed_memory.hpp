// How the C library treats freed memory.
#pragma once

namespace chexnet {

// From here on up to 64 MB at the end of the heap stay with this process, and
// blocks below 32 MB come from there. Once, before there are threads. Does
// nothing where the environment sets it (MALLOC_…, GLIBC_TUNABLES), or where
// the C library is another one.
void keep_freed_memory();

}  // namespace chexnet
