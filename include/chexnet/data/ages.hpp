// What an age in a table can be, and the bands that ages are counted in.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace chexnet {

// NIH's table has typing errors of ages, such as 412; nobody is older. NaN is
// not known.
constexpr float kOldestAge = 120;  // years
constexpr bool is_known_age(float years) {
  return years >= 0 && years <= kOldestAge;
}

// Years that a band begins with, unless the user gives others.
inline const std::vector<int> kAgeBands = {18, 40, 65};

// "0-17", "18-39", "40-64", "65+"; blank = unknown. `from` ascending, positive.
inline std::string age_band(float years, std::span<const int> from) {
  if (!is_known_age(years)) return "";
  const auto next = std::ranges::upper_bound(
      from, years, {}, [](int begin) { return static_cast<float>(begin); });
  const std::string first =
      std::to_string(next == from.begin() ? 0 : *(next - 1));
  if (next == from.end()) return first + "+";
  return first + "-" + std::to_string(*next - 1);
}

}  // namespace chexnet
