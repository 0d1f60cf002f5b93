// Operating points of all findings: chosen on one prediction, applied to
// another.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/operating_point.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

struct OperatingPoint {
  std::string finding;
  std::string rule;                 // "youden", "sensitivity 0.9", "threshold"
  std::optional<double> threshold;  // empty where none could be chosen
  // Of the images that it was chosen on; 0 where the user gave it.
  std::size_t chosen_on_positives = 0, chosen_on_images = 0;
  Confusion confusion;  // of the images that it is applied to
  bool few_positives() const {
    return confusion.few_positives() ||
           (chosen_on_images > 0 && chosen_on_positives < kFewPositives);
  }
};

struct OperatingRules {
  double sensitivity = 0.9, specificity = 0.9;  // in 0..1
  std::optional<double> threshold;              // the user's, of all findings
};

// For each of `findings` (as in score()) of `test`: Youden's point, one of the
// sensitivity and one of the specificity, chosen on `validation` where there is
// one (else null), and the user's threshold where he gave one. DataError when
// an image is in both predictions, or when `validation` lacks a finding.
std::vector<OperatingPoint> operating_points(
    const Predictions& test, const std::vector<std::string>& findings,
    const Predictions* validation, const OperatingRules& rules);

}  // namespace chexnet
