// Linux's files say more than its calls: the age of a process stands in
// /proc/self/stat, free memory in /proc/meminfo, and what a container or batch
// job leaves of it in the cgroup's files, of version 2 or 1, whichever is
// there. A cgroup counts cached files as used, of which a job that reads images
// has as many as it may; the kernel gives them back when somebody needs memory.
#include "chexnet/core/process_usage.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace chexnet {

double process_age_s() {
  // Field 22 of /proc/self/stat, counted from after the name in brackets: clock
  // ticks since boot.
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(
      text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int i = 3; i < 22; ++i) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec) -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) +
           1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

namespace {

std::optional<uint64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

uint64_t cached_files(const std::filesystem::path& stat) {
  std::ifstream file(stat);
  uint64_t sum = 0, value = 0;
  for (std::string key; file >> key >> value;)
    if (key == "inactive_file" || key == "active_file") sum += value;
  return sum;
}

}  // namespace

std::optional<uint64_t> control_group_room(const ControlGroup& group) {
  const auto most = number_in(group.limit), now = number_in(group.used);
  if (!most || !now) return std::nullopt;  // "max" is no number
  const uint64_t used = *now - std::min(*now, cached_files(group.stat));
  return *most - std::min(*most, used);
}

uint64_t available_memory_bytes() {
  uint64_t available = 0;
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  for (uint64_t kib = 0; meminfo >> key >> kib && std::getline(meminfo, unit);)
    if (key == "MemAvailable:") available = kib * 1024;
  const std::filesystem::path root = "/sys/fs/cgroup", old = root / "memory";
  for (const ControlGroup& group :
       {ControlGroup{root / "memory.max", root / "memory.current",
                     root / "memory.stat"},
        ControlGroup{old / "memory.limit_in_bytes",
                     old / "memory.usage_in_bytes", old / "memory.stat"}})
    available =
        std::min(available, control_group_room(group).value_or(available));
  return available;
}

}  // namespace chexnet
