#include "labeled_probabilities.hpp"

#include <cassert>
#include <cmath>
#include <cstddef>

namespace chexnet {

// One value outside of 0 .. 1 and none counts: these are scores of another
// kind, of which no calibration can be told.
std::vector<LabeledProbability> labeled_probabilities(
    std::span<const double> probabilities, std::span<const float> labels) {
  assert(probabilities.size() == labels.size());
  std::vector<LabeledProbability> cases;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::isnan(labels[i])) continue;
    const double p = probabilities[i];
    if (!(p >= 0 && p <= 1)) return {};
    cases.push_back({p, labels[i] > 0.5f});
  }
  return cases;
}

}  // namespace chexnet
