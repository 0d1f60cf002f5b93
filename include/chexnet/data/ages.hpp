// What an age in a table can be.
#pragma once

namespace chexnet {

// NIH's table has typing errors of ages, such as 412; nobody is older. NaN is
// not known.
constexpr float kOldestAge = 120;  // years
constexpr bool is_known_age(float years) {
  return years >= 0 && years <= kOldestAge;
}

}  // namespace chexnet
