// What this process has used, and the clock. Seconds are doubles since an arbitrary start; memory
// is in bytes.
#pragma once

#include <cstdint>
#include <string>

namespace chexnet {

double now_s();                  // steady clock
double process_age_s();          // since the kernel started this process, to 10 ms
double cpu_s();                  // user + system time of all threads of this process
std::uint64_t peak_rss_bytes();  // largest resident set so far
// Memory this process may still take: what the system calls available, or less where a control
// group limits it. 0 = not known.
std::uint64_t available_memory_bytes();
double system_time_s();  // since 1970, by the system's clock
std::string utc_time();  // 2026-11-21T09:00:00Z

// A size for people: "1.5 GiB".
std::string readable_bytes(double bytes);
// A time for people: "1h02m", "3m07s", "12s".
std::string readable_s(double seconds);
// `value` with `digits` after the point.
std::string fixed(double value, int digits);

}  // namespace chexnet
