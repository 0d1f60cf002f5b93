// Maps of a finding's probabilities to such as mean what they say. Fitted on
// validation and applied to test: fitted on the test images themselves, a map
// would look better than it is.
//
// probabilities [N] in 0..1; labels [N]: 1 positive, 0 negative, NaN left out.
// Both fits are empty without a positive or without a negative, or when a
// labeled case has no probability.
//
// With P positives and N negatives, a positive counts as (P + 1) / (P + 2) and
// a negative as 1 / (N + 2), as in Platt, "Probabilistic outputs for support
// vector machines" (1999). So a finding that a few validation images separate
// does not make every other image certain.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace chexnet {

// logit / temperature (Guo et al., "On calibration of modern neural networks",
// ICML 2017, here for one finding): the order of images stays. Probabilities
// closer than 1e-15 to 0 or 1 count as at that distance.
struct TemperatureScaling {
  double temperature = 1;
  double operator()(double probability) const;
};
inline constexpr double kLeastTemperature = 0.01, kMostTemperature = 100;
// The temperature of the least cross-entropy, which has one minimum; the
// nearest of 0.01 .. 100 where that is outside (probabilities that all lie near
// 0.5, or an order that is worse than chance).
std::optional<TemperatureScaling> fit_temperature(
    std::span<const double> probabilities, std::span<const float> labels);

// The non-decreasing map of least squares (Zadrozny and Elkan, KDD 2002), by
// pooling adjacent violators. Linear between its points, constant outside, as
// scikit-learn's IsotonicRegression(out_of_bounds="clip") of these targets.
// Images may become tied. Two arrays hold it all.
struct IsotonicMap {
  std::vector<double> from;  // [points] ascending, each once
  std::vector<double> to;    // [points] not descending
  double operator()(double probability) const;
};
std::optional<IsotonicMap> fit_isotonic(std::span<const double> probabilities,
                                        std::span<const float> labels);

}  // namespace chexnet
