// A handful of images that show what a network gets right and wrong.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chexnet/eval/decision_rules.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

struct ScoredExample {
  size_t image = 0, finding = 0;  // in the prediction
  std::string kind;               // "right", "missed" or "false alarm"
  double probability = 0, threshold = 0;
};

// At most `most`, three for a finding: of the positives at or above Youden's
// threshold the highest score, of those below it the lowest, and of the
// negatives at or above it the highest; of equal scores the first image.
// Findings with more positives come first; of those without a threshold in
// `rules` there are none.
std::vector<ScoredExample> choose_examples(const Predictions& predictions,
                                           const DecisionRules& rules,
                                           size_t most);

}  // namespace chexnet
