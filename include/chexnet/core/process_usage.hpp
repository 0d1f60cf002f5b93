// What this process has used, and may still use. Seconds and bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace chexnet {

double process_age_s();     // since the kernel started this process, to 10 ms
double cpu_s();             // user + system time of all threads of this process
uint64_t peak_rss_bytes();  // largest resident set so far
// Memory this process may still take: the system's MemAvailable, or less where
// a control group limits it. 0 = not known.
uint64_t available_memory_bytes();

// The files of a control group's memory.
struct ControlGroup {
  std::filesystem::path limit, used, stat;
};
// The memory it leaves, cached files not counted; nothing where it has no
// limit.
std::optional<uint64_t> control_group_room(const ControlGroup& group);

}  // namespace chexnet
