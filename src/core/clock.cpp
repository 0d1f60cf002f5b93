// Durations and deadlines are differences of the steady clock, which nobody
// sets; what people or other hosts compare comes from the system's clock.
#include "chexnet/core/clock.hpp"

#include <array>
#include <chrono>
#include <ctime>

namespace chexnet {

double now_s() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double system_time_s() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string utc_time() {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace chexnet
