// The middle of measured values.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace chexnet {

// The upper one of an even number, so always a value that was measured. `values` is not empty.
inline double median(std::vector<double> values) {
  assert(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace chexnet
