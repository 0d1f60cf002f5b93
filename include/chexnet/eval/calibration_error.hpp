// Whether probabilities mean what they say: of the images with 0.3 about three
// in ten have the finding.
//
// probabilities [N] in 0..1; labels [N]: 1 positive, 0 negative, NaN left out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace chexnet {

// The mean of (probability - label)^2 (Brier, Monthly Weather Review 1950).
// Empty without a labeled case, or when a labeled one has no probability.
std::optional<double> brier_score(std::span<const double> probabilities,
                                  std::span<const float> labels);

// One bin of a reliability diagram; it holds low < probability <= high, the
// first one `low` as well.
struct ReliabilityBin {
  double low = 0, high = 0;
  size_t cases = 0, positives = 0;
  double mean_probability = 0;  // 0 in an empty bin
  // Of positives; 0 in an empty bin.
  double rate() const {
    return cases == 0
               ? 0
               : static_cast<double>(positives) / static_cast<double>(cases);
  }
};

// Equal widths of 0..1, or edges at quantiles of the probabilities (linear
// between two, as numpy.percentile), where equal ones stay together and bins
// may be of unequal size, or empty. As scikit-learn's calibration_curve
// with "uniform" and "quantile", empty bins included. No bins where brier_score
// is empty.
enum class Binning { kEqualWidth, kEqualMass };
std::vector<ReliabilityBin> reliability_bins(
    std::span<const double> probabilities, std::span<const float> labels,
    Binning binning, size_t bins = 10);

// The expected calibration error: the mean over cases of |mean probability -
// rate| of their bin (Naeini, Cooper and Hauskrecht, AAAI 2015). It depends on
// the bins: name them with the figure. Empty without a case.
std::optional<double> calibration_error(std::span<const ReliabilityBin> bins);

}  // namespace chexnet
