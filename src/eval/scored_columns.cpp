#include "chexnet/eval/scored_columns.hpp"

#include <algorithm>
#include <utility>

#include "chexnet/data/findings.hpp"

namespace chexnet {

// Rows are sorted by image, so that figures do not depend on the order in
// which ranks or files hand them over.
ScoredColumns scored_columns(const Predictions& predictions,
                             const std::vector<std::string>& findings) {
  const size_t width = predictions.findings.size();
  ScoredColumns result;
  for (size_t i = 0; i < predictions.images.size(); ++i)
    if (predictions.scored(i)) result.rows.push_back(i);
  std::ranges::sort(result.rows, {}, [&](size_t i) -> const std::string& {
    return predictions.images[i];
  });
  for (const auto& name : scored_findings(findings, predictions.findings)) {
    const auto k =
        static_cast<size_t>(std::ranges::find(predictions.findings, name) -
                            predictions.findings.begin());
    ScoredColumns::Column column{name, k, {}, {}};
    for (const auto i : result.rows) {
      const double score = predictions.probabilities[i * width + k];
      column.scores.push_back(score);
      column.labels.push_back(predictions.labels[i * width + k]);
      if (score < 0 || score > 1) result.probabilities = false;
    }
    column.positives =
        static_cast<size_t>(std::ranges::count(column.labels, 1.0f));
    column.negatives =
        static_cast<size_t>(std::ranges::count(column.labels, 0.0f));
    result.columns.push_back(std::move(column));
  }
  return result;
}

MeanColumns mean_columns(const ScoredColumns& scored,
                         const PatientNumbers& patients) {
  MeanColumns frequent, all{{}, true};
  for (size_t k = 0; k < scored.columns.size(); ++k) {
    const auto& column = scored.columns[k];
    if (is_no_finding(column.finding)) continue;
    const auto ranked = rank_cases(column.scores, column.labels);
    if (!ranked) continue;
    const size_t fewest = std::min(ranked->positives, ranked->negatives);
    if (fewest > 0) all.columns.push_back(k);
    if (fewest >= kFewPositives && has_enough_patients(*ranked, patients))
      frequent.columns.push_back(k);
  }
  return frequent.columns.empty() ? all : frequent;
}

PatientNumbers patients_of(const Predictions& predictions,
                           const std::vector<size_t>& rows) {
  if (predictions.patients.empty()) return one_patient_per_case(rows.size());
  std::vector<std::string> patients;
  for (const auto i : rows) patients.push_back(predictions.patients[i]);
  return number_patients(patients);
}

}  // namespace chexnet
