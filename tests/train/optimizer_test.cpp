#include "chexnet/train/optimizer.hpp"

#include <ATen/ATen.h>

#include <algorithm>
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
    Optimizer optimizer(c, p, {});
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

// Adam's first step moves every weight by its rate.
TEST_CASE("each part has its rate, and late parts count their own steps") {
  Network network(network_spec("densenet121"), 14,
                  {.precision = Precision::kFp64});
  Parameters& p = network.parameters();
  TrainConfig c;
  c.head_lr_factor = 10;
  c.layer_decay = 0.5;
  c.eps = 0;
  Optimizer optimizer(c, p, {.never = 1, .late = 3});
  at::Tensor gradients = p.flat_gradients(), values = p.flat_values();
  const auto moved = [&](int part) {
    values.zero_();
    gradients.fill_(1);
    optimizer.set_rate(0.01);
    optimizer.step();
    const auto of_part = std::ranges::find(p.list(), part, &Parameter::part);
    return -p.part(values, *of_part).mean().item<double>();
  };
  const auto is = [](double value, double expected) {
    return std::abs(value - expected) < 1e-12;
  };
  optimizer.set_waiting(true);
  CHECK(is(moved(kHeadPart), 0.1));
  CHECK(is(moved(4), 0.005));
  CHECK(is(moved(3), 0.0025));
  CHECK(is(moved(2), 0));
  CHECK(optimizer.steps().all == 4);
  CHECK(optimizer.steps().late == 0);
  optimizer.set_waiting(false);
  CHECK(is(moved(2), 0.00125));
  CHECK(is(moved(1), 0.000625));
  CHECK(is(moved(kStemPart), 0));
  CHECK(optimizer.steps().all == 7);
  CHECK(optimizer.steps().late == 3);
}
