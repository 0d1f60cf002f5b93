// Products and sums are separate operators: one that fuses them may round the
// tail of a buffer otherwise than its vectors, and so depend on threads.
#include "chexnet/train/weight_average.hpp"

#include <ATen/ATen.h>

namespace chexnet {
namespace {

void exchange(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor kept = a.clone();
  a.copy_(b);
  b.copy_(kept);
}

// From the nearer end, so that constant weights average to themselves, and a
// share of 1 gives `now`: rounded, share and 1 - share need not add up to 1,
// and the error would be the same at every step.
void move_towards(const at::Tensor& average, const at::Tensor& now,
                  const at::Tensor& share) {
  const at::Tensor distance = now - average;
  const at::Tensor from_average = average + distance * share;
  const at::Tensor from_now = now - distance * (1 - share);
  average.copy_(at::where(share < 0.5, from_average, from_now));
}

}  // namespace

WeightAverage::WeightAverage(double ema, Parameters& parameters)
    : ema_(ema), parameters_(parameters) {
  if (!is_on()) return;
  values_ = parameters.flat_values().clone();
  running_ = parameters.flat_running().clone();
}

void WeightAverage::begin() {
  if (!is_on()) return;
  values_.copy_(parameters_.flat_values());
  running_.copy_(parameters_.flat_running());
}

at::Tensor WeightAverage::decay_after(const at::Tensor& steps) const {
  const at::Tensor t = steps.to(at::kDouble);
  return ((t + 1) / (t + 10)).clamp_max(ema_);
}

void WeightAverage::update(const at::Tensor& steps,
                           const at::Tensor& not_finite) {
  if (!is_on()) return;
  // A step that changed no weight moves no average.
  const at::Tensor share =
      (1 - decay_after(steps)) * (1 - not_finite.to(at::kDouble));
  move_towards(values_, parameters_.flat_values(),
               share.to(values_.scalar_type()));
  move_towards(running_, parameters_.flat_running(),
               share.to(running_.scalar_type()));
}

void WeightAverage::swap() {
  if (!is_on()) return;
  exchange(values_, parameters_.flat_values());
  exchange(running_, parameters_.flat_running());
  parameters_.refresh_compute_copies();
}

}  // namespace chexnet
