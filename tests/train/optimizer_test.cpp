#include "chexnet/train/optimizer.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "chexnet/model/network.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("optimizers follow their formulas, and only weights decay") {
  for (const auto kind :
       {OptimizerKind::kAdam, OptimizerKind::kAdamW, OptimizerKind::kSgd}) {
    INFO(choice_name(kind));
    Network network(network_spec("densenet121"), 14,
                    {.precision = Precision::kFp64});
    Parameters& p = network.parameters();
    p.initialize(1);
    TrainConfig c;
    c.optimizer = kind;
    c.weight_decay = 0.1;
    Optimizer optimizer(c, p, p.size());
    at::Tensor decay = at::zeros_like(p.flat_values()),
               used = at::zeros_like(decay);  // 0 in gaps
    for (const auto& q : p.list()) {
      if (q.is_weight) p.part(decay, q).fill_(c.weight_decay);
      p.part(used, q).fill_(1);
    }
    at::Tensor value = p.flat_values().clone(), m = at::zeros_like(value),
               v = at::zeros_like(value);
    for (int t = 1; t <= 3; ++t) {
      const double lr = 0.01 * t;
      at::Tensor gradient =
          used * at::sin(at::arange(value.numel(), at::kDouble) * t);
      at::Tensor target = p.flat_gradients();
      target.copy_(gradient);
      optimizer.set_rate(lr);
      optimizer.step();
      if (kind == OptimizerKind::kSgd) {
        gradient = gradient + decay * value;
        m = t == 1 ? gradient : m * c.momentum + gradient;
        value = value - lr * m;
        continue;
      }
      if (kind == OptimizerKind::kAdamW)
        value = value * (1 - lr * decay);
      else
        gradient = gradient + decay * value;
      m = m * c.betas[0] + gradient * (1 - c.betas[0]);
      v = v * c.betas[1] + gradient.square() * (1 - c.betas[1]);
      value = value - lr * (m / (1 - std::pow(c.betas[0], t))) /
                          ((v / (1 - std::pow(c.betas[1], t))).sqrt() + c.eps);
    }
    CHECK((value - p.flat_values()).abs().max().item<double>() < 1e-12);
  }
}
