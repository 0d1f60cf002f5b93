// A logit and the probability that it stands for.
#pragma once

#include <cmath>

namespace chexnet {

inline double probability_of(double logit) {
  return 1 / (1 + std::exp(-logit));
}
// `probability`: above 0 and below 1.
inline double logit_of(double probability) {
  return std::log(probability) - std::log1p(-probability);
}

}  // namespace chexnet
