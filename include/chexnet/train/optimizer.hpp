// Adam, AdamW or SGD over the flat parameter buffer by LibTorch's fused
// operators. Weights decay, BatchNorm and biases do not: the buffer is walked
// in runs of equal kind (one run when there is no decay).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

class Optimizer {
 public:
  // Parameters at and past `trainable_end` of the flat buffer are frozen.
  Optimizer(const TrainConfig& config, Parameters& parameters,
            int64_t trainable_end);
  // Of the steps from now on; for fused operators a device holds it in fp32.
  void set_rate(double lr);
  // `not_finite`, of the gradients (gradient_control.hpp): 1 = nothing changes.
  // The host does not wait for it.
  void step(const std::optional<at::Tensor>& not_finite = {});

  // Flat state by slot name ("exp_avg", …), for checkpoints; and the count of
  // steps taken.
  std::vector<std::pair<std::string, at::Tensor>> slots() const {
    return slots_;
  }
  int64_t steps() const;  // the host waits for it
  // The same where the device has it, fp32.
  const at::Tensor& step_count() const { return steps_; }
  void set_steps(int64_t steps);

 private:
  // Runs of one kind: views of the flat buffers, [run].
  struct Group {
    double weight_decay = 0;
    std::vector<at::Tensor> values, gradients, first, second, steps;
  };
  void update(Group& group, const std::optional<at::Tensor>& not_finite) const;
  TrainConfig config_;
  std::vector<std::pair<std::string, at::Tensor>> slots_;
  at::Tensor rate_;
  at::Tensor steps_;  // fp32 scalar, as the operators want it: exact to 2^24
  std::vector<Group> groups_;
};

}  // namespace chexnet
