#include "chexnet/train/run/rate_curve.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace chexnet {
namespace {

constexpr double kShare = 0.98;  // of the average that stays at a step
constexpr double kTooHigh = 4;   // times the least
// The average of fewer is that of their noise.
constexpr size_t kLeastPoints = 10;

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
  average_ = kShare * average_ + (1 - kShare) * loss;
  const auto count = static_cast<double>(points_.size() + 1);
  points_.push_back({rate, loss, average_ / (1 - std::pow(kShare, count))});
  diverged_ = points_.back().smoothed > kTooHigh * lowest()->smoothed;
  return !diverged_;
}

const RateCurve::Point* RateCurve::lowest() const {
  const auto found = std::ranges::min_element(points_, {}, &Point::smoothed);
  return found == points_.end() ? nullptr : &*found;
}

std::optional<double> RateCurve::suggested() const {
  if (points_.size() < kLeastPoints) return std::nullopt;
  const auto last = static_cast<size_t>(lowest() - points_.data());
  double steepest = 0;
  std::optional<double> rate;
  for (size_t i = kLeastPoints; i < last; ++i) {
    const double slope = points_[i + 1].smoothed - points_[i - 1].smoothed;
    if (slope >= steepest) continue;
    steepest = slope;
    rate = points_[i].rate;
  }
  return rate;
}

}  // namespace chexnet
