#include "chexnet/train/optimizer.hpp"

#include <ATen/ATen.h>

namespace chexnet {
namespace {

struct Run {
  int64_t begin, end;
  bool decays;
};

std::vector<Run> runs_of(const Parameters& parameters, int64_t trainable_end,
                         bool with_decay) {
  std::vector<Run> runs;
  for (const auto& p : parameters.list()) {
    if (p.end > trainable_end) break;
    const bool decays = p.is_weight && with_decay;
    if (!runs.empty() && runs.back().decays == decays)
      runs.back().end = p.end;
    else
      runs.push_back({p.begin, p.end, decays});
  }
  return runs;
}

}  // namespace

Optimizer::Optimizer(const TrainConfig& config, Parameters& parameters,
                     int64_t trainable_end)
    : config_(config) {
  const at::Tensor& values = parameters.flat_values();
  const auto slot = [&](const char* name) {
    slots_.emplace_back(name, at::zeros_like(values));
  };
  if (config.optimizer == OptimizerKind::kSgd) {
    slot("momentum");
  } else {
    slot("exp_avg");
    slot("exp_avg_sq");
  }
  steps_ = at::zeros({}, values.options().dtype(at::kFloat));
  rate_ = at::zeros(
      {}, values.options().dtype(values.is_cpu() ? at::kDouble : at::kFloat));

  const auto runs = runs_of(parameters, trainable_end, config.weight_decay > 0);
  for (const bool decays : {false, true}) {
    Group group;
    group.weight_decay = decays ? config.weight_decay : 0.0;
    for (const auto& run : runs) {
      if (run.decays != decays) continue;
      const auto part = [&](const at::Tensor& flat) {
        return flat.narrow(0, run.begin, run.end - run.begin);
      };
      group.values.push_back(part(values));
      group.gradients.push_back(part(parameters.flat_gradients()));
      group.first.push_back(part(slots_.front().second));
      group.second.push_back(part(slots_.back().second));
      group.steps.push_back(steps_);
    }
    if (!group.values.empty()) groups_.push_back(std::move(group));
  }
}

void Optimizer::set_rate(double lr) { rate_.fill_(lr); }

void Optimizer::step(const std::optional<at::Tensor>& not_finite) {
  steps_.add_(1);
  for (Group& group : groups_) update(group, not_finite);
  if (not_finite) steps_.sub_(*not_finite);
}

void Optimizer::update(Group& group,
                       const std::optional<at::Tensor>& not_finite) const {
  if (config_.optimizer == OptimizerKind::kSgd) {
    // Momentum starts at 0, so the first step needs no rule of its own. Without
    // momentum the operator wants no buffers.
    const bool has_momentum = config_.momentum != 0;
    at::_fused_sgd_(group.values, group.gradients,
                    has_momentum ? group.first : std::vector<at::Tensor>(),
                    group.weight_decay, config_.momentum, rate_, 0.0, false,
                    false, false, {}, not_finite);
    return;
  }
  if (config_.optimizer == OptimizerKind::kAdamW)
    at::_fused_adamw_(group.values, group.gradients, group.first, group.second,
                      {}, group.steps, rate_, config_.betas[0],
                      config_.betas[1], group.weight_decay, config_.eps, false,
                      false, {}, not_finite);
  else
    at::_fused_adam_(group.values, group.gradients, group.first, group.second,
                     {}, group.steps, rate_, config_.betas[0], config_.betas[1],
                     group.weight_decay, config_.eps, false, false, {},
                     not_finite);
}

int64_t Optimizer::steps() const {
  return static_cast<int64_t>(steps_.item<double>());
}

void Optimizer::set_steps(int64_t steps) { steps_.fill_(steps); }

}  // namespace chexnet
