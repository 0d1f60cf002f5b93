// Adam, AdamW or SGD over the flat parameter buffer by LibTorch's fused
// operators. Weights decay, BatchNorm and biases do not: the buffer is walked
// in runs of equal kind (one run when there is no decay).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
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
            std::int64_t trainable_end);
  void step(double lr);

  // Flat state by slot name ("exp_avg", …), for checkpoints; and the count of
  // steps taken.
  std::vector<std::pair<std::string, at::Tensor>> slots() const {
    return slots_;
  }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  struct Run {
    std::int64_t begin, end;
    bool decays;
  };
  std::vector<at::Tensor> views(const at::Tensor& flat, bool decays) const;
  TrainConfig config_;
  Parameters& parameters_;
  std::vector<Run> runs_;
  std::vector<std::pair<std::string, at::Tensor>> slots_;
  std::int64_t steps_ = 0;
};

}  // namespace chexnet
