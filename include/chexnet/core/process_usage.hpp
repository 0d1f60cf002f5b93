// What this process has used, and may still use. Seconds and bytes.
#pragma once

#include <cstdint>

namespace chexnet {

double process_age_s();     // since the kernel started this process, to 10 ms
double cpu_s();             // user + system time of all threads of this process
uint64_t peak_rss_bytes();  // largest resident set so far
// Memory this process may still take: what the system calls available, or less
// where a control group limits it. 0 = not known.
uint64_t available_memory_bytes();

}  // namespace chexnet
