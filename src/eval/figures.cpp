// All findings share one set of resamples: so there is an interval of their
// mean.
#include "chexnet/eval/figures.hpp"

#include <cmath>
#include <span>
#include <utility>

#include "any_finding.hpp"
#include "auroc.hpp"
#include "chexnet/eval/calibration_error.hpp"
#include "chexnet/eval/delong.hpp"
#include "chexnet/eval/ranked_cases.hpp"
#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
namespace {

using Column = ScoredColumns::Column;

// "Some disease is present" as one more column, over the same images.
Column any_finding_column(const Predictions& predictions,
                          const ScoredColumns& scored) {
  std::vector<size_t> indices;
  for (const auto& column : scored.columns) indices.push_back(column.index);
  const AnyFinding any = any_finding(predictions, indices);
  Column column{"any finding", 0, {}, {}};
  for (const auto i : scored.rows) {
    column.scores.push_back(any.scores[i]);
    column.labels.push_back(any.labels[i]);
  }
  return column;
}

FindingFigures figures_of_ranks(const Column& column, const RankedCases& ranked,
                                const PatientNumbers& patients,
                                const Replicates& replicates) {
  FindingFigures figures;
  figures.finding = column.finding;
  figures.positives = ranked.positives;
  figures.negatives = ranked.negatives;
  figures.auroc.value = auroc(column.scores, column.labels);
  figures.average_precision.value = average_precision(ranked);
  figures.few_patients = !has_enough_patients(ranked, patients);
  if (figures.few_patients) return figures;
  figures.auroc.interval = percentile_interval(replicates.auroc);
  figures.average_precision.interval =
      percentile_interval(replicates.average_precision);
  if (const auto variance =
          delong_by_patient(column.scores, column.labels, patients))
    figures.delong = variance->interval;
  return figures;
}

void add_figures_of_probabilities(const Column& column,
                                  FindingFigures& figures) {
  figures.brier = brier_score(column.scores, column.labels);
  const auto error = [&](Binning binning) {
    return calibration_error(
        reliability_bins(column.scores, column.labels, binning));
  };
  figures.error_in_equal_widths = error(Binning::kEqualWidth);
  figures.error_in_equal_masses = error(Binning::kEqualMass);
}

MeanFigure mean_auroc(const MeanColumns& over,
                      const std::vector<FindingFigures>& findings,
                      const std::vector<Replicates>& replicates) {
  MeanFigure mean;
  mean.findings = over.columns.size();
  mean.rough = over.rough;
  if (mean.findings == 0) return mean;
  std::vector<std::span<const double>> columns;
  double sum = 0;
  for (const size_t k : over.columns) {
    sum += *findings[k].auroc.value;
    columns.emplace_back(replicates[k].auroc);
  }
  mean.value = sum / static_cast<double>(mean.findings);
  if (!mean.rough) mean.interval = percentile_interval(mean_of(columns));
  return mean;
}

}  // namespace

Figures figures_of(const Predictions& predictions,
                   const std::vector<std::string>& findings,
                   const BootstrapOptions& options) {
  ScoredColumns scored = scored_columns(predictions, findings);
  const PatientNumbers patients = patients_of(predictions, scored.rows);
  const MeanColumns in_mean = mean_columns(scored, patients);
  if (scored.probabilities)
    scored.columns.push_back(any_finding_column(predictions, scored));

  std::vector<RankedCases> ranked;
  for (const auto& column : scored.columns)
    ranked.push_back(
        rank_cases(column.scores, column.labels).value_or(RankedCases{}));
  const auto replicates = bootstrap(ranked, patients, options);
  Figures figures;
  for (size_t k = 0; k < ranked.size(); ++k)
    figures.findings.push_back(figures_of_ranks(scored.columns[k], ranked[k],
                                                patients, replicates[k]));
  if (scored.probabilities) {
    figures.any_finding = std::move(figures.findings.back());
    figures.findings.pop_back();
    for (size_t k = 0; k < figures.findings.size(); ++k)
      add_figures_of_probabilities(scored.columns[k], figures.findings[k]);
  }
  figures.mean_auroc = mean_auroc(in_mean, figures.findings, replicates);
  figures.patients = predictions.patients.empty() ? 0 : patients.count;
  figures.resamples = options.resamples;
  figures.seed = options.seed;
  return figures;
}

}  // namespace chexnet
