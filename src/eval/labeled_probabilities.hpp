// The labeled cases of one finding, for figures that take scores for
// probabilities.
#pragma once

#include <span>
#include <vector>

namespace chexnet {

struct LabeledProbability {
  double probability;  // in 0..1
  bool positive;
};

// labels: 1 positive, 0 negative, NaN left out. Empty when a labeled case has
// no probability in 0..1.
std::vector<LabeledProbability> labeled_probabilities(
    std::span<const double> probabilities, std::span<const float> labels);

}  // namespace chexnet
