// The variance of an AUROC without resampling, and the test of two models on
// the same images (DeLong, DeLong and Clarke-Pearson, Biometrics 1988), in
// O(N log N) by midranks (Sun and Xu, IEEE Signal Processing Letters 2014).
//
// DeLong takes images as independent. Where patients have several, the variants
// with `patients` sum each patient's part first (Obuchowski, "Nonparametric
// analysis of clustered ROC curve data", Biometrics 1997); with one image for
// each patient they are DeLong's.
#pragma once

#include <optional>
#include <span>

#include "chexnet/eval/bootstrap.hpp"
#include "chexnet/eval/interval.hpp"

namespace chexnet {

struct AurocVariance {
  double auroc = 0;
  double variance = 0;
  // 95 %, normal on the scale of the logit (Pepe, "The Statistical Evaluation
  // of Medical Tests", 2003, section 5.2.5), so that it stays within 0..1.
  // Empty where the variance is 0, as at an AUROC of 0 or 1.
  std::optional<Interval> interval;
};

// scores [N]; labels [N]: 1 positive, 0 negative, NaN left out. Empty with
// fewer than two positives or negatives (for `patients`: than two patients that
// have some), or when a labeled case has NaN as its score.
std::optional<AurocVariance> delong(std::span<const double> scores,
                                    std::span<const float> labels);
std::optional<AurocVariance> delong_by_patient(std::span<const double> scores,
                                               std::span<const float> labels,
                                               const PatientNumbers& patients);

struct PairedTest {
  double difference = 0;   // AUROC of a minus that of b
  double variance = 0;     // of the difference
  Interval interval = {};  // 95 %, normal, cut to -1..1
  // Two-sided, of "the two are equal". Empty where the variance is 0.
  std::optional<double> p = {};
};

// Two models' scores of the same images. Empty as above, for either of the two.
std::optional<PairedTest> delong_test(std::span<const double> a,
                                      std::span<const double> b,
                                      std::span<const float> labels);
std::optional<PairedTest> delong_test_by_patient(
    std::span<const double> a, std::span<const double> b,
    std::span<const float> labels, const PatientNumbers& patients);

}  // namespace chexnet
