// "Is 0.12 positive?", answered for a network: thresholds and calibration of
// each finding, chosen on validation and kept with the weights that they are
// for.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/config/choices.hpp"
#include "chexnet/eval/calibration.hpp"
#include "chexnet/eval/interval.hpp"
#include "chexnet/eval/operating_point.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

// Rules chosen for every finding besides Youden's point.
struct OperatingTargets {
  double sensitivity = 0.9, specificity = 0.9;  // in 0..1
};

struct FindingRules {
  struct Point {
    std::string rule;  // "youden", "sensitivity 0.9", "specificity 0.9"
    std::optional<double> threshold;  // empty where none could be chosen
  };
  std::string finding;
  size_t positives = 0, negatives = 0;  // labeled, that it was chosen on
  std::vector<Point> points;
  // Empty where there was nothing to fit: see calibration.hpp.
  std::optional<TemperatureScaling> temperature;
  std::optional<IsotonicMap> isotonic;

  bool few_positives() const { return positives < kFewPositives; }
  // Of the rule whose name begins with the word `kind`.
  std::optional<double> threshold(const std::string& kind) const;
};

struct DecisionRules {
  std::vector<FindingRules> findings;
  std::string scored_with;   // scored_with() of the scores (scored_units.hpp)
  size_t images = 0;         // that were scored, of those it was chosen on
  std::string chosen_on;     // SHA-256 of their names, as Split::sha256
  std::string model_sha256;  // of the model that they are for
  std::string manifest_sha256;  // of the table that gave the labels

  // Null when it is not known.
  const FindingRules* find(const std::string& finding) const;
};

// Of the images that `validation` has scores of. Calibration is fitted where
// all scores are probabilities. The sums are for the caller to fill in.
DecisionRules choose_rules(const Predictions& validation,
                           const std::vector<std::string>& findings,
                           const OperatingTargets& targets);

// JSON; numbers read back equal. `origin` is named by the CheckpointError of a
// text that is none.
std::string decision_rules_json(const DecisionRules& rules);
DecisionRules parse_decision_rules(const std::string& json,
                                   const std::string& origin);

// How a probability is calibrated.
enum class Calibration { kTemperature, kIsotonic };
constexpr auto names_of(Calibration) {
  using enum Calibration;
  return std::to_array<NamedChoice<Calibration>>(
      {{kTemperature, "temperature"}, {kIsotonic, "isotonic"}});
}
// Empty where it was not fitted.
std::optional<double> calibrated(const FindingRules& rules,
                                 Calibration calibration, double probability);

}  // namespace chexnet
