#include "chexnet/train/run/rate_curve.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "chexnet/eval/interval.hpp"

namespace chexnet {
namespace {

constexpr double kShare = 0.9;  // of the moving average that stays at a step
constexpr double kTooHigh = 4;  // times the least
constexpr double kBeyond = 4;   // standard errors that are no noise
constexpr size_t kLeastPoints = 20;

}  // namespace

double RateRange::rate(int64_t step) const {
  assert(steps > 1 && step >= 0 && step < steps);
  const double share =
      static_cast<double>(step) / static_cast<double>(steps - 1);
  return from * std::pow(to / from, share);
}

bool RateCurve::add(double rate, double loss) {
  if (!std::isfinite(loss)) {
    diverged_ = true;
    return false;
  }
  const bool first = points_.empty();
  average_ = first ? loss : kShare * average_ + (1 - kShare) * loss;
  least_ = first ? average_ : std::min(least_, average_);
  points_.push_back({rate, loss});
  diverged_ = average_ > kTooHigh * least_;
  return !diverged_;
}

size_t RateCurve::half_window() const {
  constexpr size_t kWindows = 10;
  return std::max<size_t>(2, points_.size() / kWindows / 2);
}

std::vector<double> RateCurve::smoothed() const {
  std::vector<double> means;
  const size_t half = half_window();
  for (size_t i = 0; i < points_.size(); ++i) {
    const size_t first = i < half ? 0 : i - half,
                 end = std::min(i + half + 1, points_.size());
    double sum = 0;
    for (size_t p = first; p < end; ++p) sum += points_[p].loss;
    means.push_back(sum / static_cast<double>(end - first));
  }
  return means;
}

std::optional<RateCurve::Suggestion> RateCurve::suggested() const {
  if (points_.size() < kLeastPoints) return std::nullopt;
  const std::vector<double> means = smoothed();
  const auto lowest =
      static_cast<size_t>(std::ranges::min_element(means) - means.begin());
  const size_t fifth = points_.size() / 5;
  std::vector<double> begin;
  for (size_t i = 0; i < fifth; ++i) begin.push_back(points_[i].loss);
  const SampleMoments noise = moments_of(begin);
  const double error = std::sqrt(
      noise.variance * (1.0 / static_cast<double>(fifth) +
                        1.0 / static_cast<double>(2 * half_window() + 1)));
  if (noise.mean - means[lowest] <= kBeyond * error) return std::nullopt;
  const double middle = (noise.mean + means[lowest]) / 2;
  size_t i = lowest;
  while (i > 0 && means[i - 1] < middle) --i;
  return Suggestion{points_[i].rate, points_[lowest].rate};
}

}  // namespace chexnet
