#include "chexnet/eval/interval.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <vector>

namespace chexnet {

SampleMoments moments_of(std::span<const double> values) {
  SampleMoments moments;
  if (values.empty()) return moments;
  const auto count = static_cast<double>(values.size());
  moments.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double v : values)
    squares += (v - moments.mean) * (v - moments.mean);
  if (values.size() > 1) moments.variance = squares / (count - 1);
  return moments;
}

// Simpson's rule on the density, from 0 to where it holds 47.5 % (of one
// comparison). A million degrees of freedom are as good as all.
double student_95(double degrees_of_freedom, size_t comparisons) {
  const double df = std::min(degrees_of_freedom, 1e6);
  assert(df >= 1 && comparisons > 0);
  if (df == 1e6 && comparisons == 1) return kNormal95;
  const double scale =
      std::exp(std::lgamma((df + 1) / 2) - std::lgamma(df / 2)) /
      std::sqrt(df * std::numbers::pi);
  const auto density = [&](double x) {
    return scale * std::pow(1 + x * x / df, -(df + 1) / 2);
  };
  constexpr double kStep = 0.01;
  const double wanted = 0.5 - 0.025 / static_cast<double>(comparisons);
  double share = 0;
  for (double x = 0;; x += kStep) {
    const double more =
        kStep / 6 *
        (density(x) + 4 * density(x + kStep / 2) + density(x + kStep));
    if (share + more >= wanted) return x + kStep * (wanted - share) / more;
    share += more;
  }
}

Interval cut_to(const Interval& range, double low, double high) {
  return {std::clamp(range.low, low, high), std::clamp(range.high, low, high)};
}

Interval interval_over_seeds(std::span<const double> by_seed,
                             double patient_variance, size_t comparisons) {
  assert(by_seed.size() >= 2);
  const auto seeds = static_cast<double>(by_seed.size());
  const auto [mean, variance_of_one] = moments_of(by_seed);
  const double of_seeds = variance_of_one / seeds;
  const double variance = of_seeds + patient_variance;
  if (variance == 0) return {mean, mean};
  // Infinite where seeds do not differ.
  const double df = variance * variance * (seeds - 1) / (of_seeds * of_seeds);
  const double half = student_95(df, comparisons) * std::sqrt(variance);
  return cut_to({mean - half, mean + half}, -1, 1);
}

std::optional<Interval> wilson_interval(size_t hits, size_t cases) {
  assert(hits <= cases);
  if (cases == 0) return std::nullopt;
  const auto n = static_cast<double>(cases);
  const double share = static_cast<double>(hits) / n;
  const double z2 = kNormal95 * kNormal95;

  const double center = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kNormal95 / (1 + z2 / n) *
                      std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  // Exact at the ends, where rounding would leave 1e-17.
  return Interval{hits == 0 ? 0 : center - half,
                  hits == cases ? 1 : center + half};
}

double quantile(std::span<const double> ascending, double level) {
  assert(!ascending.empty() && level >= 0 && level <= 1);
  const double position = level * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  const double part = position - static_cast<double>(below);
  const double step = ascending[above] - ascending[below];
  // As numpy does it, to the last bit: from the nearer end.
  return part < 0.5 ? ascending[below] + step * part
                    : ascending[above] - step * (1 - part);
}

std::optional<PercentileInterval> percentile_interval(
    std::span<const double> resamples) {
  std::vector<double> defined;
  defined.reserve(resamples.size());
  std::ranges::copy_if(resamples, std::back_inserter(defined),
                       [](double v) { return !std::isnan(v); });
  if (defined.empty()) return std::nullopt;
  std::ranges::sort(defined);
  const Interval interval = {quantile(defined, 0.025),
                             quantile(defined, 0.975)};
  if (interval.low == interval.high) return std::nullopt;
  return PercentileInterval{interval, resamples.size() - defined.size()};
}

}  // namespace chexnet
