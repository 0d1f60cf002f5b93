#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace chexnet {

// `value` with so many digits that are not leading zeros: "0.034", "0.40",
// "1.2e-05".
inline std::string significant(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%#.*g", digits, value);
  std::string text = buffer.data();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace chexnet
