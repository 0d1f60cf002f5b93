// A logit and the probability that it stands for.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace chexnet {

inline double probability_of(double logit) {
  return 1 / (1 + std::exp(-logit));
}
// `probability`: above 0 and below 1.
inline double logit_of(double probability) {
  return std::log(probability) - std::log1p(-probability);
}
// What a table rounded to 0 or 1 has no logit: that of the nearest number which
// has one. `probability`: in 0..1.
inline double nearest_logit(double probability) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  constexpr double kMost = 1 - std::numeric_limits<double>::epsilon() / 2;
  return logit_of(std::clamp(probability, kLeast, kMost));
}

}  // namespace chexnet
