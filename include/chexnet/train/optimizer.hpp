// Adam, AdamW or SGD over the flat parameter buffer by LibTorch's fused
// operators. The buffer is processed in spans of equal kind, one span when no
// rule here tells parameters apart: weights decay, BatchNorm and biases do not;
// a part's rate is train.lr x train.layer_decay for each part between it and
// the head, whose rate is train.lr x train.head_lr_factor; and what thaws later
// counts its own steps from then on, as parameters do in PyTorch.
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
  // Parts of the network (engine/network_spec.hpp), from the stem on: `never`
  // are not trained, and up to `late` only while not frozen.
  struct FrozenParts {
    int never = 0, late = 0;
  };
  Optimizer(const TrainConfig& config, Parameters& parameters,
            FrozenParts frozen);
  // Whether the late parts wait; at first they do not.
  void set_waiting(bool late_wait) { late_wait_ = late_wait; }
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
  struct Steps {
    int64_t all = 0;
    int64_t late = 0;  // of these, that the late parts took part in
  };
  Steps steps() const;  // the host waits for it
  // All, where the device has them, fp32.
  const at::Tensor& step_count() const { return steps_; }
  const at::Tensor& late_step_count() const { return late_steps_; }
  void set_steps(const Steps& steps);

 private:
  // What tells parameters apart.
  struct Kind {
    bool late = false;
    double rate_factor = 1, weight_decay = 0;
    bool operator==(const Kind&) const = default;
  };
  // Spans of one kind: views of the flat buffers, [span].
  struct Group {
    Kind kind;
    at::Tensor rate;
    std::vector<at::Tensor> values, gradients, first, second, steps;
  };
  Kind kind_of(const Parameter& parameter, FrozenParts frozen) const;
  Group& group_of(const Kind& kind);
  void update(Group& group, const std::optional<at::Tensor>& not_finite) const;
  TrainConfig config_;
  std::vector<std::pair<std::string, at::Tensor>> slots_;
  // fp32 scalars, as the operators want them: exact to 2^24
  at::Tensor steps_, late_steps_;
  bool late_wait_ = false;
  std::vector<Group> groups_;
};

}  // namespace chexnet
