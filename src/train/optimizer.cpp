#include "chexnet/train/optimizer.hpp"

#include <ATen/ATen.h>

namespace chexnet {

Optimizer::Optimizer(const TrainConfig& config, Parameters& parameters,
                     std::int64_t trainable_end)
    : config_(config), parameters_(parameters) {
  for (const auto& p : parameters.list()) {
    if (p.end > trainable_end) break;
    const bool decays = p.is_weight && config.weight_decay > 0;
    if (!runs_.empty() && runs_.back().decays == decays)
      runs_.back().end = p.end;
    else
      runs_.push_back({p.begin, p.end, decays});
  }
  const auto slot = [&](const char* name) {
    slots_.emplace_back(name, at::zeros_like(parameters.flat_values()));
  };
  if (config.optimizer == OptimizerKind::kSgd) {
    slot("momentum");
  } else {
    slot("exp_avg");
    slot("exp_avg_sq");
  }
}

std::vector<at::Tensor> Optimizer::views(const at::Tensor& flat,
                                         bool decays) const {
  std::vector<at::Tensor> out;
  for (const auto& run : runs_)
    if (run.decays == decays)
      out.push_back(flat.narrow(0, run.begin, run.end - run.begin));
  return out;
}

void Optimizer::step(double lr) {
  ++steps_;
  for (const bool decays : {false, true}) {
    std::vector<at::Tensor> values = views(parameters_.flat_values(), decays);
    if (values.empty()) continue;
    const std::vector<at::Tensor> gradients =
        views(parameters_.flat_gradients(), decays);
    std::vector<at::Tensor> first = views(slots_[0].second, decays);
    const double decay = decays ? config_.weight_decay : 0.0;
    if (config_.optimizer == OptimizerKind::kSgd) {
      if (config_.momentum == 0)
        first.clear();  // the operator wants no buffers then
      at::_fused_sgd_(values, gradients, first, decay, config_.momentum, lr,
                      0.0, false, false, steps_ == 1);
      continue;
    }
    std::vector<at::Tensor> second = views(slots_[1].second, decays);
    const std::vector<at::Tensor> counts(
        values.size(), at::full({}, static_cast<double>(steps_),
                                values[0].options().dtype(at::kFloat)));
    if (config_.optimizer == OptimizerKind::kAdamW)
      at::_fused_adamw_(values, gradients, first, second, {}, counts, lr,
                        config_.beta1, config_.beta2, decay, config_.eps, false,
                        false);
    else
      at::_fused_adam_(values, gradients, first, second, {}, counts, lr,
                       config_.beta1, config_.beta2, decay, config_.eps, false,
                       false);
  }
}

}  // namespace chexnet
