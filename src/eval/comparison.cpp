// Both predictions are cut to the images that both have scored, in the order of
// the first; from there on they are columns of equal rows.
#include "chexnet/eval/comparison.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/auroc.hpp"
#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
namespace {

// The given rows and findings of a prediction, all scored.
Predictions part_of(const Predictions& p, const std::vector<size_t>& rows,
                    const std::vector<std::string>& findings) {
  Predictions part;
  part.findings = findings;
  std::vector<size_t> columns;
  for (const auto& finding : findings)
    columns.push_back(*find_finding(p.findings, finding));
  for (const auto i : rows) {
    part.images.push_back(p.images[i]);
    if (!p.patients.empty()) part.patients.push_back(p.patients[i]);
    for (const auto k : columns) {
      part.labels.push_back(p.labels[i * p.findings.size() + k]);
      part.probabilities.push_back(p.probabilities[i * p.findings.size() + k]);
    }
  }
  return part;
}

struct CommonRows {
  std::vector<size_t> a, b;
  size_t only_one = 0;
};

CommonRows common_rows(const Predictions& a, const Predictions& b) {
  std::unordered_map<std::string, size_t> of_b;
  for (size_t i = 0; i < b.images.size(); ++i)
    if (b.scored(i)) of_b.emplace(b.images[i], i);
  CommonRows common;
  for (size_t i = 0; i < a.images.size(); ++i) {
    if (!a.scored(i)) continue;
    const auto found = of_b.find(a.images[i]);
    if (found == of_b.end()) {
      ++common.only_one;
      continue;
    }
    common.a.push_back(i);
    common.b.push_back(found->second);
  }
  common.only_one += of_b.size() - common.b.size();
  if (common.a.empty())
    throw DataError(
        "[comparison] no image is in both tables. Hint: score the "
        "same images with both networks");
  return common;
}

std::vector<std::string> common_findings(
    const Predictions& a, const Predictions& b,
    const std::vector<std::string>& wanted) {
  std::vector<std::string> common;
  for (const auto& name : scored_findings(wanted, a.findings))
    if (find_finding(b.findings, name)) common.push_back(name);
  if (common.empty())
    throw DataError(
        "[comparison] no finding is in both tables. Hint: they "
        "have " +
        listed(a.findings) + " and " + listed(b.findings));
  return common;
}

void refuse_other_labels(const Predictions& a, const Predictions& b) {
  size_t differ = 0;
  for (size_t i = 0; i < a.labels.size(); ++i) {
    const bool blank = std::isnan(a.labels[i]) && std::isnan(b.labels[i]);
    if (!blank && a.labels[i] != b.labels[i]) ++differ;
  }
  if (differ > 0)
    throw DataError("[comparison] " + std::to_string(differ) +
                    " labels differ between the tables. Hint: read both with "
                    "one --manifest");
}

FindingComparison compare_columns(const ScoredColumns::Column& a,
                                  const ScoredColumns::Column& b,
                                  const RankedCases& ranked,
                                  const PatientNumbers& patients,
                                  std::span<const double> differences) {
  FindingComparison result;
  result.finding = a.finding;
  result.positives = ranked.positives;
  result.negatives = ranked.negatives;
  result.auroc_a = auroc(a.scores, a.labels);
  result.auroc_b = auroc(b.scores, b.labels);
  if (!result.auroc_a || !result.auroc_b) return result;
  result.difference.value = *result.auroc_a - *result.auroc_b;
  if (!has_enough_patients(ranked, patients)) return result;
  result.difference.interval = percentile_interval(differences);
  result.p = bootstrap_p(differences);
  result.delong =
      delong_test_by_patient(a.scores, b.scores, a.labels, patients);
  return result;
}

void add_mean(const std::vector<std::vector<double>>& differences,
              Comparison& comparison) {
  std::vector<std::span<const double>> columns;
  double sum = 0;
  bool enough = true;  // patients, of each finding in the mean
  for (size_t k = 0; k < differences.size(); ++k) {
    const FindingComparison& f = comparison.findings[k];
    if (!f.difference.value || is_no_finding(f.finding)) continue;
    sum += *f.difference.value;
    columns.emplace_back(differences[k]);
    enough = enough && f.p;
  }
  if (columns.empty()) return;
  comparison.mean_difference.value = sum / static_cast<double>(columns.size());
  if (!enough) return;
  const std::vector<double> means = mean_of(columns);
  comparison.mean_difference.interval = percentile_interval(means);
  comparison.mean_p = bootstrap_p(means);
}

}  // namespace

Comparison compare(const Predictions& a, const Predictions& b,
                   const std::vector<std::string>& findings,
                   const BootstrapOptions& options) {
  const CommonRows rows = common_rows(a, b);
  const auto names = common_findings(a, b, findings);
  const Predictions part_a = part_of(a, rows.a, names);
  const Predictions part_b = part_of(b, rows.b, names);
  refuse_other_labels(part_a, part_b);
  const ScoredColumns scored_a = scored_columns(part_a, {});
  const auto& columns_a = scored_a.columns;
  const auto columns_b = scored_columns(part_b, {}).columns;
  const PatientNumbers patients = patients_of(part_a, scored_a.rows);

  std::vector<RankedCases> ranked;  // a, b, a, b, …
  for (size_t k = 0; k < names.size(); ++k)
    for (const auto* column : {&columns_a[k], &columns_b[k]})
      ranked.push_back(
          rank_cases(column->scores, column->labels).value_or(RankedCases{}));
  const auto replicates = bootstrap(ranked, patients, options);
  Comparison comparison{rows.a.size(), rows.only_one, {}, {}, {}};
  std::vector<std::vector<double>> differences;
  for (size_t k = 0; k < names.size(); ++k) {
    differences.push_back(
        difference(replicates[2 * k].auroc, replicates[2 * k + 1].auroc));
    comparison.findings.push_back(compare_columns(columns_a[k], columns_b[k],
                                                  ranked[2 * k], patients,
                                                  differences.back()));
  }
  add_mean(differences, comparison);
  return comparison;
}

}  // namespace chexnet
