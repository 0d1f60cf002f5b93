#include "chexnet/train/optimizer.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace chexnet {

Optimizer::Kind Optimizer::kind_of(const Parameter& parameter,
                                   FrozenParts frozen) const {
  const bool decays = parameter.is_weight && config_.weight_decay > 0;
  return {parameter.part < frozen.late,
          parameter.is_head()
              ? config_.head_lr_factor
              : std::pow(config_.layer_decay, kHeadPart - parameter.part),
          decays ? config_.weight_decay : 0.0};
}

Optimizer::Group& Optimizer::group_of(const Kind& kind) {
  const auto found = std::ranges::find(groups_, kind, &Group::kind);
  if (found != groups_.end()) return *found;
  // A fused operator reads its rate where it computes.
  const at::Tensor rate = at::zeros(
      {}, steps_.options().dtype(steps_.is_cpu() ? at::kDouble : at::kFloat));
  Group& group = groups_.emplace_back();
  group.kind = kind;
  group.rate = rate;
  return group;
}

Optimizer::Optimizer(const TrainConfig& config, Parameters& parameters,
                     FrozenParts frozen)
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
  late_steps_ = at::zeros_like(steps_);

  const auto& list = parameters.list();
  for (size_t first = 0, last = 0; first < list.size(); first = last) {
    if (list[first].part < frozen.never) break;
    const Kind kind = kind_of(list[first], frozen);
    while (last < list.size() && list[last].part >= frozen.never &&
           kind_of(list[last], frozen) == kind)
      ++last;
    const int64_t begin = list[first].begin;
    const auto part = [&](const at::Tensor& flat) {
      return flat.narrow(0, begin, list[last - 1].end - begin);
    };
    Group& group = group_of(kind);
    group.values.push_back(part(values));
    group.gradients.push_back(part(parameters.flat_gradients()));
    group.first.push_back(part(slots_.front().second));
    group.second.push_back(part(slots_.back().second));
    group.steps.push_back(kind.late ? late_steps_ : steps_);
  }
}

void Optimizer::set_rate(double lr) {
  for (Group& group : groups_) group.rate.fill_(lr * group.kind.rate_factor);
}

void Optimizer::step(const std::optional<at::Tensor>& not_finite) {
  steps_.add_(1);
  if (!late_wait_) late_steps_.add_(1);
  for (Group& group : groups_)
    if (!group.kind.late || !late_wait_) update(group, not_finite);
  if (!not_finite) return;
  steps_.sub_(*not_finite);
  if (!late_wait_) late_steps_.sub_(*not_finite);
}

void Optimizer::update(Group& group,
                       const std::optional<at::Tensor>& not_finite) const {
  if (config_.optimizer == OptimizerKind::kSgd) {
    // Momentum starts at 0, so the first step needs no special rule. Without
    // momentum the operator takes no buffers.
    const bool has_momentum = config_.momentum != 0;
    at::_fused_sgd_(group.values, group.gradients,
                    has_momentum ? group.first : std::vector<at::Tensor>(),
                    group.kind.weight_decay, config_.momentum, group.rate, 0.0,
                    false, false, false, {}, not_finite);
    return;
  }
  if (config_.optimizer == OptimizerKind::kAdamW)
    at::_fused_adamw_(group.values, group.gradients, group.first, group.second,
                      {}, group.steps, group.rate, config_.betas[0],
                      config_.betas[1], group.kind.weight_decay, config_.eps,
                      false, false, {}, not_finite);
  else
    at::_fused_adam_(group.values, group.gradients, group.first, group.second,
                     {}, group.steps, group.rate, config_.betas[0],
                     config_.betas[1], group.kind.weight_decay, config_.eps,
                     false, false, {}, not_finite);
}

Optimizer::Steps Optimizer::steps() const {
  return {static_cast<int64_t>(steps_.item<double>()),
          static_cast<int64_t>(late_steps_.item<double>())};
}

void Optimizer::set_steps(const Steps& steps) {
  steps_.fill_(steps.all);
  late_steps_.fill_(steps.late);
}

}  // namespace chexnet
