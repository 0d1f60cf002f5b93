// Whether the images that are scored have a finding about as often as those
// that a network was chosen on. Much more, or less, is often a column that was
// taken for another.
#pragma once

#include <string>
#include <vector>

#include "chexnet/eval/decision_rules.hpp"

namespace chexnet {

struct LabeledImages {
  std::string finding;
  size_t positives = 0, negatives = 0;
};

// "Hernia 12.0 % (1.2 % of validation)" for each finding whose share of
// positives differs by more than a factor of three, and beyond chance (four
// standard errors); empty where none does. At least 20 labeled images.
std::string unlike_prevalence(const DecisionRules& rules,
                              const std::vector<LabeledImages>& scored);

}  // namespace chexnet
