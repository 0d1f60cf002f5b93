// Intervals that hold the true value in 95 of 100 experiments.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace chexnet {

struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

// 95 % of a standard normal variable lie in -kNormal95 .. kNormal95.
inline constexpr double kNormal95 = 1.959963984540054;

// A figure of fewer positives than this says so wherever it is shown: its
// interval is wide, and its limits are themselves rough.
inline constexpr size_t kFewPositives = 10;

// Of a sample: the variance is squares / (n - 1); without two values it is 0.
struct SampleMoments {
  double mean = 0, variance = 0;
};
SampleMoments moments_of(std::span<const double> values);

// What 95 % of a variable by Student's t lie within, on either side of 0, with
// at least one degree of freedom, whole or not; with `comparisons`, what all of
// so many lie within in 95 of 100 experiments (Bonferroni).
double student_95(double degrees_of_freedom, size_t comparisons = 1);

// What cannot be outside of low..high cut to it: that leaves out no value that
// is possible, so the interval holds the true one as often as before.
Interval cut_to(const Interval& range, double low, double high);

// With fewer seeds we do not say which recipe is better: of two, t is up to
// 12.7.
inline constexpr size_t kLeastSeeds = 3;

// 95 % of the mean of `by_seed`, at least two differences of two recipes'
// AUROCs, for another training *and* other patients. Their patients are the
// same ones: `patient_variance` is that of the mean over patients. Degrees of
// freedom by Satterthwaite (Biometrics Bulletin 1946); cut to -1..1.
// `comparisons` as of student_95().
Interval interval_over_seeds(std::span<const double> by_seed,
                             double patient_variance, size_t comparisons = 1);

// 95 % of a fraction of independent cases (Wilson, "Probable inference", JASA
// 1927). Several images of one patient are not independent: the interval is
// then too narrow. Empty when there are no cases.
std::optional<Interval> wilson_interval(size_t hits, size_t cases);

// The 2.5th and the 97.5th percentile of a figure's resamples, between two
// values in proportion (numpy's "linear"). NaN = not defined in a resample:
// left out. Empty when none is defined, and where both are equal: a figure that
// no resample changes (0 of 14 hits) is not known exactly.
struct PercentileInterval {
  Interval interval;
  size_t left_out = 0;  // resamples
};
std::optional<PercentileInterval> percentile_interval(
    std::span<const double> resamples);

// The quantile at `level` (0..1) of ascending values, at least one; numpy's
// "linear".
double quantile(std::span<const double> ascending, double level);

}  // namespace chexnet
