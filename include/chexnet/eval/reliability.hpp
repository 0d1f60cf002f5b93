// Whether the probabilities of a prediction mean what they say, finding by
// finding: as the network gave them, and as calibration makes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/calibration_error.hpp"
#include "chexnet/eval/decision_rules.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

struct Reliability {
  std::string finding;
  std::string calibration;              // "none", "temperature", "isotonic"
  size_t positives = 0, negatives = 0;  // labeled, of these images
  size_t fitted_on_positives = 0;       // of validation; 0 for "none"
  std::optional<double> brier;
  std::optional<double> error_in_equal_widths, error_in_equal_masses;
  std::vector<ReliabilityBin> equal_widths, equal_masses;  // ten each

  bool few_positives() const {
    return positives < kFewPositives ||
           (calibration != "none" && fitted_on_positives < kFewPositives);
  }
};

// For each of `findings` (as in score()) "none", then the calibration that
// `rules` (null: none) were fitted with. Nothing where a score is no
// probability.
std::vector<Reliability> reliability_of(
    const Predictions& predictions, const std::vector<std::string>& findings,
    const DecisionRules* rules);

}  // namespace chexnet
