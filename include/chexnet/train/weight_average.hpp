// An average of a network's weights and running statistics over steps, which
// evaluation and model files use instead of the last weights:
//
//   average = d average + (1 - d) weights,  d = min(ema, (1 + t) / (10 + t))
//
// after step t, an exponential moving average (train.ema); the first steps do
// not keep the random start (the rule of TensorFlow's
// ExponentialMovingAverage). Running statistics are averaged alike, as timm's
// ModelEmaV2 does. It is a function of reduced gradients alone, so it is equal
// on all ranks, and elementwise, so no thread changes it.
#pragma once

#include <ATen/core/Tensor.h>

#include "chexnet/model/parameters.hpp"

namespace chexnet {

class WeightAverage {
 public:
  // `ema`: the decay. `parameters` are allocated and outlive it. With a decay
  // of 0 there is no average, and every call does nothing.
  WeightAverage(double ema, Parameters& parameters);

  bool is_on() const { return ema_ > 0; }
  // The weights as they are now: before the first step.
  void begin();
  // After a step. `steps`, fp32: those that changed the weights so far;
  // `not_finite`: 1 = this one did not. Both scalars of the device.
  void update(const at::Tensor& steps, const at::Tensor& not_finite);
  // Exchanges average and weights, to the last bit: twice is not at all.
  void swap();

  // What swap() exchanges with the network: flat values, and running
  // statistics. Both are null tensors without an average.
  const at::Tensor& values() const { return values_; }
  const at::Tensor& running() const { return running_; }

 private:
  at::Tensor decay_after(const at::Tensor& steps) const;

  double ema_;
  Parameters& parameters_;
  at::Tensor values_, running_;  // layouts of the network's flat buffers
};

// While it lives the network has the averaged weights.
class AverageInUse {
 public:
  explicit AverageInUse(WeightAverage& average) : average_(average) {
    average_.swap();
  }
  ~AverageInUse() { average_.swap(); }
  AverageInUse(const AverageInUse&) = delete;
  AverageInUse& operator=(const AverageInUse&) = delete;

 private:
  WeightAverage& average_;
};

}  // namespace chexnet
