// Operating points of all findings: chosen on one prediction, applied to
// another.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/decision_rules.hpp"
#include "chexnet/eval/operating_point.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

struct OperatingPoint {
  std::string finding;
  std::string rule;                 // "youden", "sensitivity 0.9", "threshold"
  std::optional<double> threshold;  // empty where none could be chosen
  // Of the images that it was chosen on, labeled; 0 where the user gave it.
  size_t chosen_on_positives = 0, chosen_on_images = 0;
  Confusion confusion;  // of the images that it is applied to
  bool few_positives() const {
    return confusion.few_positives() ||
           (chosen_on_images > 0 && chosen_on_positives < kFewPositives);
  }
};

// For each of `findings` (as in score()) of `test`: the points of `rules`
// (null: none) and `threshold`, the user's, where he gave one. DataError when
// the rules lack a finding.
std::vector<OperatingPoint> operating_points(
    const Predictions& test, const std::vector<std::string>& findings,
    const DecisionRules* rules, std::optional<double> threshold);

// DataError when an image is in both predictions: thresholds would be chosen on
// the images they are applied to.
void refuse_common_images(const Predictions& test,
                          const Predictions& validation);

}  // namespace chexnet
