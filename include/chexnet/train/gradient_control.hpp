// What decides about a step once its gradient is reduced: norm, clipping, loss
// scale, and whether the gradient is finite. All of these are numbers in the
// device's memory that operators read, so the host need not wait for the
// gradient. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "chexnet/train/run/loss_scale.hpp"

namespace chexnet {

class GradientControl {
 public:
  // For gradients on the device of `like`. `clip_norm`: 0 = off.
  GradientControl(const at::Tensor& like, double clip_norm,
                  const LossScale& scale);

  // The gradient of a loss, times the loss scale.
  at::Tensor scaled(const at::Tensor& dlogits) const;
  // Measures the reduced gradient, divides the loss scale out and clips it.
  void apply(const at::Tensor& gradients);
  // Of the last call: the norm before clipping, and 1 where it was not finite,
  // 0 else; scalars. At 1 no weight may change.
  const at::Tensor& norm() const { return norm_; }
  const at::Tensor& not_finite() const { return not_finite_; }

  // The state that a call changes for the next: scalars.
  std::vector<at::Tensor> state() const { return {scale_, good_}; }
  bool is_dynamic() const { return dynamic_; }
  // The host waits for it.
  LossScale loss_scale() const;
  void set_loss_scale(const LossScale& scale);

 private:
  double clip_norm_;
  bool dynamic_, scales_;
  at::Tensor scale_, good_;  // value and steps since its last change
  at::Tensor norm_, not_finite_;
};

}  // namespace chexnet
