#include "chexnet/core/resources.hpp"

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace chexnet {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::string utc_time() {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string readable_bytes(double bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fixed(bytes, unit == 0 ? 0 : 1) + " " + kUnits[unit];
}

std::string readable_s(double seconds) {
  const auto s = static_cast<long long>(seconds + 0.5);
  std::array<char, 48> text{};
  if (s >= 3600)
    std::snprintf(text.data(), text.size(), "%lldh%02lldm", s / 3600, s / 60 % 60);
  else if (s >= 60)
    std::snprintf(text.data(), text.size(), "%lldm%02llds", s / 60, s % 60);
  else
    std::snprintf(text.data(), text.size(), "%llds", s);
  return text.data();
}

}  // namespace chexnet
