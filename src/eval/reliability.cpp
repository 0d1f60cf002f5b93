#include "chexnet/eval/reliability.hpp"

#include <algorithm>

#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
namespace {

using Column = ScoredColumns::Column;

Reliability of(const Column& column, const std::string& calibration,
               std::span<const double> probabilities) {
  Reliability r;
  r.finding = column.finding;
  r.calibration = calibration;
  r.positives = column.positives;
  r.negatives = column.negatives;
  r.brier = brier_score(probabilities, column.labels);
  r.equal_widths =
      reliability_bins(probabilities, column.labels, Binning::kEqualWidth);
  r.equal_masses =
      reliability_bins(probabilities, column.labels, Binning::kEqualMass);
  r.error_in_equal_widths = calibration_error(r.equal_widths);
  r.error_in_equal_masses = calibration_error(r.equal_masses);
  return r;
}

// Each calibration that was fitted on validation, applied to these scores. What
// was not fitted (too few positives there) has no line.
void add_calibrated(const Column& column, const FindingRules& rules,
                    std::vector<Reliability>& results) {
  for (const auto& [calibration, name] : names_of(Calibration{})) {
    if (!calibrated(rules, calibration, 0.5)) continue;  // was not fitted
    std::vector<double> mapped;
    for (const double p : column.scores)
      mapped.push_back(*calibrated(rules, calibration, p));
    results.push_back(of(column, name, mapped));
    results.back().fitted_on_positives = rules.positives;
  }
}

}  // namespace

std::vector<Reliability> reliability_of(
    const Predictions& predictions, const std::vector<std::string>& findings,
    const DecisionRules* rules) {
  const ScoredColumns scored = scored_columns(predictions, findings);
  if (!scored.probabilities) return {};
  std::vector<Reliability> results;
  for (const Column& column : scored.columns) {
    results.push_back(of(column, "none", column.scores));
    const FindingRules* own =
        rules == nullptr ? nullptr : rules->find(column.finding);
    if (own != nullptr) add_calibrated(column, *own, results);
  }
  return results;
}

}  // namespace chexnet
