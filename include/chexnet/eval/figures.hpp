// The figures of a prediction with their uncertainty, which `evaluate` shows
// beside the AUROCs of score().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/bootstrap.hpp"
#include "chexnet/eval/interval.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

// A figure and 95 % of it by the bootstrap of patients.
struct Estimate {
  std::optional<double> value;
  std::optional<PercentileInterval> interval;
};

// A mean over findings (mean_columns()).
struct MeanFigure : Estimate {
  size_t findings = 0;
  // None of them has ten positives and ten negatives of five patients each, so
  // there is no interval.
  bool rough = false;
};

// Of one finding, over the images where it is labeled.
struct FindingFigures {
  std::string finding;
  size_t positives = 0, negatives = 0;
  // Fewer than kLeastPatients that have it, or that have it not: no interval.
  bool few_patients = false;
  Estimate auroc, average_precision;
  // 95 % of the AUROC without resampling, by patient (delong.hpp).
  std::optional<Interval> delong;
  // Empty where a score is no probability.
  std::optional<double> brier;
  // Expected calibration error, ten bins (calibration_error.hpp).
  std::optional<double> error_in_equal_widths, error_in_equal_masses;
  bool few_positives() const { return positives < kFewPositives; }
};

struct Figures {
  std::vector<FindingFigures> findings;  // as Scores::findings
  MeanFigure mean_auroc;  // a resample counts where all of them have an AUROC
  FindingFigures any_finding;  // by the mean logit, which is no probability
  uint32_t patients = 0;       // of the scored images; 0 = not known
  size_t resamples = 0;
  uint64_t seed = 0;
};

// Of the images that were scored, for `findings` as in score(). 14 findings of
// 22,433 images take about two CPU seconds.
Figures figures_of(const Predictions& predictions,
                   const std::vector<std::string>& findings,
                   const BootstrapOptions& options);

}  // namespace chexnet
