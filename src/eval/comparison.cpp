// Both predictions are cut to the images that both have scored, in the order of
// the first; from there on they are columns of equal rows.
#include "chexnet/eval/comparison.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <unordered_map>
#include <utility>

#include "auroc.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
namespace {

// The given rows and findings of a prediction, all scored.
Predictions part_of(const Predictions& p, const std::vector<size_t>& rows,
                    const std::vector<std::string>& findings) {
  Predictions part;
  part.by = p.by;
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
  if (a.by != b.by)
    throw DataError(
        "[comparison] one table has a row for each {}, the other for each {}. "
        "Hint: score both with one eval.by",
        choice_name(a.by), choice_name(b.by));
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
        "[comparison] no finding is in both tables. Hint: they have {} and {}",
        listed(a.findings), listed(b.findings));
  return common;
}

void refuse_other_labels(const Predictions& a, const Predictions& b) {
  size_t differ = 0;
  for (size_t i = 0; i < a.labels.size(); ++i) {
    const bool blank = std::isnan(a.labels[i]) && std::isnan(b.labels[i]);
    if (!blank && a.labels[i] != b.labels[i]) ++differ;
  }
  if (differ > 0)
    throw DataError(
        "[comparison] labels differ between the tables: {}. Hint: read both "
        "with one --manifest",
        differ);
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

void add_mean(const MeanColumns& over,
              const std::vector<std::vector<double>>& differences,
              Comparison& comparison) {
  MeanFigure& mean = comparison.mean_difference;
  std::vector<std::span<const double>> columns;
  double sum = 0;
  for (const size_t k : over.columns) {
    const auto& difference = comparison.findings[k].difference.value;
    if (!difference) continue;  // the other table lacks scores
    sum += *difference;
    columns.emplace_back(differences[k]);
  }
  mean.findings = columns.size();
  mean.rough = over.rough;
  if (columns.empty()) return;
  mean.value = sum / static_cast<double>(mean.findings);
  if (mean.rough) return;
  const std::vector<double> means = mean_of(columns);
  mean.interval = percentile_interval(means);
  comparison.mean_p = bootstrap_p(means);
}

// Of each network the images and findings that all of them have scored.
std::vector<Predictions> common_parts(
    const std::vector<const Predictions*>& networks) {
  Predictions common = *networks.front();
  for (const auto* network : networks) {
    const auto names = common_findings(common, *network, {});
    common = part_of(common, common_rows(common, *network).a, names);
  }
  std::vector<Predictions> parts;
  for (const auto* network : networks) {
    const auto rows = common_rows(common, *network).b;
    parts.push_back(part_of(*network, rows, common.findings));
    refuse_other_labels(common, parts.back());
  }
  return parts;
}

// A difference of recipes: of each seed, and in each resample of patients the
// mean over seeds.
struct SeededDifference {
  std::vector<double> by_seed, resampled;
};

double resampled_variance(std::span<const double> resamples) {
  std::vector<double> defined;
  std::ranges::copy_if(resamples, std::back_inserter(defined),
                       [](double v) { return !std::isnan(v); });
  return moments_of(defined).variance;
}

// The mean of equally long columns.
std::vector<double> mean_column(const std::vector<std::vector<double>>& all) {
  return mean_of(std::vector<std::span<const double>>(all.begin(), all.end()));
}

// Of column k; networks [2 x seeds], of recipe a first. Empty where an AUROC is
// not defined.
SeededDifference seeded_difference(const std::vector<ScoredColumns>& networks,
                                   size_t k, const PatientNumbers& patients,
                                   const BootstrapOptions& options) {
  std::vector<RankedCases> ranked;
  std::vector<double> aurocs;
  for (const auto& network : networks) {
    const auto& column = network.columns[k];
    const auto value = auroc(column.scores, column.labels);
    if (!value) return {};
    aurocs.push_back(*value);
    ranked.push_back(*rank_cases(column.scores, column.labels));
  }
  const auto replicates = bootstrap(ranked, patients, options);
  const size_t seeds = networks.size() / 2;
  SeededDifference found;
  std::vector<std::vector<double>> resampled;  // [seed]
  for (size_t s = 0; s < seeds; ++s) {
    found.by_seed.push_back(aurocs[seeds + s] - aurocs[s]);
    resampled.push_back(
        difference(replicates[seeds + s].auroc, replicates[s].auroc));
  }
  found.resampled = mean_column(resampled);
  return found;
}

// Over those of `columns` that are defined.
SeededDifference mean_difference(const std::vector<SeededDifference>& all,
                                 const std::vector<size_t>& columns) {
  std::vector<std::vector<double>> by_seed, resampled;
  for (const size_t k : columns) {
    if (all[k].by_seed.empty()) continue;
    by_seed.push_back(all[k].by_seed);
    resampled.push_back(all[k].resampled);
  }
  if (by_seed.empty()) return {};
  return {mean_column(by_seed), mean_column(resampled)};
}

void add_difference(const SeededDifference& found, bool is_rough,
                    RecipeDifference& into) {
  if (found.by_seed.empty()) return;
  into.value = moments_of(found.by_seed).mean;
  if (is_rough) return;
  if (const auto range = percentile_interval(found.resampled))
    into.of_networks = range->interval;
  if (found.by_seed.size() > 1)
    into.of_recipes =
        interval_over_seeds(found.by_seed, resampled_variance(found.resampled));
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
  add_mean(mean_columns(scored_a, patients), differences, comparison);
  return comparison;
}

RecipeComparison compare_recipes(const std::vector<const Predictions*>& a,
                                 const std::vector<const Predictions*>& b,
                                 const BootstrapOptions& options,
                                 size_t comparisons) {
  assert(!a.empty() && a.size() == b.size());
  std::vector<const Predictions*> networks = a;
  networks.insert(networks.end(), b.begin(), b.end());
  const std::vector<Predictions> parts = common_parts(networks);
  std::vector<ScoredColumns> scored;
  for (const auto& part : parts) scored.push_back(scored_columns(part, {}));
  const ScoredColumns& first = scored.front();
  const PatientNumbers patients = patients_of(parts.front(), first.rows);

  RecipeComparison result{first.rows.size(), {}, {}};
  std::vector<SeededDifference> differences;  // [finding]
  for (size_t k = 0; k < first.columns.size(); ++k) {
    const auto& column = first.columns[k];
    differences.push_back(seeded_difference(scored, k, patients, options));
    RecipeDifference& finding = result.findings.emplace_back();
    finding.finding = column.finding;
    finding.positives = column.positives;
    const auto ranked = rank_cases(column.scores, column.labels);
    add_difference(differences[k],
                   !ranked || !has_enough_patients(*ranked, patients), finding);
  }
  const MeanColumns over = mean_columns(first, patients);
  const SeededDifference mean = mean_difference(differences, over.columns);
  add_difference(mean, over.rough, result.mean);
  if (result.mean.of_recipes)
    result.mean.of_all_recipes = interval_over_seeds(
        mean.by_seed, resampled_variance(mean.resampled), comparisons);
  return result;
}

}  // namespace chexnet
