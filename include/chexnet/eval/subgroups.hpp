// The same figures for parts of the images: by sex, by age, by view, by any
// column of the table.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chexnet/eval/bootstrap.hpp"
#include "chexnet/eval/interval.hpp"

namespace chexnet {

// One value of the column, for one finding.
struct Subgroup {
  std::string value;
  size_t images = 0, patients = 0;             // labeled
  size_t positives = 0, negatives = 0;         // of these images
  std::optional<double> auroc;                 // as auroc()
  std::optional<PercentileInterval> interval;  // 95 %, of patients
  // This AUROC minus that of all other images that have a value, and its
  // interval from the same resamples. Of many gaps some leave out 0 by chance:
  // one of twenty.
  std::optional<double> gap;
  std::optional<PercentileInterval> gap_interval;
  bool few_positives() const { return positives < kFewPositives; }
};

struct Subgroups {
  std::vector<Subgroup> groups;  // by value, numbers by their size
  size_t unknown = 0;            // labeled images without a value
  // Between the largest and the smallest AUROC of groups with at least
  // kFewPositives positives; empty with fewer than two of them. It grows with
  // the number of groups by chance alone.
  std::optional<double> largest_gap;
};

inline constexpr size_t kMostSubgroups = 50;

// A finding: scores [N]; labels [N]: 1 positive, 0 negative, NaN left out.
struct LabeledScores {
  std::span<const double> scores;
  std::span<const float> labels;
};

// Of each finding, from one set of resamples; values [N], blank = unknown.
// DataError with more than kMostSubgroups values. NaN as the score of a labeled
// case leaves its group, and every gap, undefined.
std::vector<Subgroups> subgroups_of(std::span<const LabeledScores> findings,
                                    std::span<const std::string> values,
                                    const PatientNumbers& patients,
                                    const BootstrapOptions& options);

// Names of bands for ages in years; NaN = unknown, which is blank. `from`
// ascending and positive, e.g. {18, 40, 65}: "0-17", "18-39", "40-64", "65+".
std::vector<std::string> age_bands(std::span<const float> ages,
                                   std::span<const int> from);

}  // namespace chexnet
