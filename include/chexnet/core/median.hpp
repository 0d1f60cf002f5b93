// The median of measured values, and other quantiles.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace chexnet {

// The upper one of an even number, so always a value that was measured.
// `values` is not empty.
inline double median(std::vector<double> values) {
  assert(!values.empty());
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The value below which `fraction` (0..1) of the sorted values lie,
// interpolated between neighbors. `values` is not empty.
inline double quantile(std::vector<double> values, double fraction) {
  assert(!values.empty() && fraction >= 0 && fraction <= 1);
  std::ranges::sort(values);
  const double at = fraction * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] +
         (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace chexnet
