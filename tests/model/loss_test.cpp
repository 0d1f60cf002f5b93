#include "chexnet/model/loss.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

const std::vector<double>& some_logits() {
  static const std::vector<double> logits = {-700, -30, -2.5, -1e-9, 0,
                                             1e-9, 0.7, 3,    40,    710};
  return logits;
}

}  // namespace

TEST_CASE("the loss of an entry is the cross-entropy of its probability") {
  for (const double z : {-5.0, -0.3, 0.0, 1.2, 7.0}) {
    const double probability = 1 / (1 + std::exp(-z));
    CHECK(entry_loss(z, 1, 1, 1) == Approx(-std::log(probability)));
    CHECK(entry_loss(z, 0, 1, 1) == Approx(-std::log(1 - probability)));
  }
}

TEST_CASE("the loss of an entry has its class's weight and never overflows") {
  for (const double z : some_logits()) {
    CHECK(std::isfinite(entry_loss(z, 1, 1, 1)));
    CHECK(entry_loss(z, 1, 3, 7) == 3 * entry_loss(z, 1, 1, 1));
    CHECK(entry_loss(z, 0, 3, 7) == 7 * entry_loss(z, 0, 1, 1));
    CHECK(entry_loss(z, 1, 0, 7) == 0);
  }
}

// Validation losses decide about best checkpoints and plateaus, so runs must
// read the same bits.
TEST_CASE(
    "the loss of an entry is to the last bit the stable form written out") {
  constexpr double kUp = 1.7, kDown = 0.3;
  for (const double z : some_logits()) {
    const double small = std::log1p(std::exp(-std::abs(z)));
    CHECK(entry_loss(z, 1, kUp, kDown) == kUp * (std::max(-z, 0.0) + small));
    CHECK(entry_loss(z, 0, kUp, kDown) == kDown * (std::max(z, 0.0) + small));
  }
}

TEST_CASE("an image's weight is that of its loss and its gradient") {
  const LossWeights of_findings{{2, 0.5}, {1, 3}};
  const BatchLoss loss(of_findings, at::TensorOptions(at::kDouble));
  const auto matrix = [](const std::vector<double>& values, int64_t columns) {
    return at::tensor(values, at::kDouble).view({2, columns});
  };
  const at::Tensor logits = matrix({-1.5, 0.3, 2.0, -0.1}, 2);
  const at::Tensor labels = matrix({1, NAN, 0.3, 1}, 2);
  const at::Tensor weights = matrix({0.25, 3}, 1);
  const LossResult all = loss(logits, labels, 2, 7, weights);
  double sum = 0;
  for (int64_t i = 0; i < 2; ++i) {
    const auto weight = weights[i].item<double>();
    const LossResult one =
        loss(logits.narrow(0, i, 1), labels.narrow(0, i, 1), 2, 7);
    sum += weight * one.sum.item<double>();
    CHECK(at::allclose(all.dlogits[i], weight * one.dlogits[0], 1e-14, 0));
  }
  CHECK(all.sum.item<double>() == Approx(sum).epsilon(1e-14));
}

TEST_CASE("training's loss of a batch is the sum of its entries' losses") {
  const LossWeights weights{{2, 0.5}, {1, 3}};
  const BatchLoss loss(weights, at::TensorOptions(at::kDouble));
  double expected = 0;
  const auto rows = static_cast<int64_t>(some_logits().size());
  at::Tensor logits = at::empty({rows, 2}, at::kDouble),
             labels = at::empty({rows, 2}, at::kDouble);
  for (int64_t i = 0; i < rows; ++i) {
    const double z = some_logits()[static_cast<size_t>(i)];
    const float label = i % 2 == 0 ? 1.0f : 0.0f;
    logits[i].fill_(z);
    labels[i][0] = label;
    labels[i][1] = i % 3 == 0 ? NAN : 1 - label;
    expected += entry_loss(z, label, weights.positive[0], weights.negative[0]);
    if (i % 3 != 0)
      expected +=
          entry_loss(z, 1 - label, weights.positive[1], weights.negative[1]);
  }
  CHECK(loss(logits, labels, 1, 1).sum.item<double>() ==
        Approx(expected).epsilon(1e-14));
}

// LibTorch's own sigmoid in fp32 is not: its last bit depends on the
// processor's vector instructions, and with it the weights of a run.
TEST_CASE(
    "a gradient in fp32 on a CPU is the exact one, rounded once, and the sum "
    "is of exact losses") {
  const LossWeights weights{{2, 0.5, 1}, {1, 3, 1}};
  const BatchLoss loss(weights, at::TensorOptions(at::kFloat));
  constexpr int64_t kRows = 1000, kFindings = 3;
  at::manual_seed(5);
  const at::Tensor logits = at::randn({kRows, kFindings}) * 4;
  const at::Tensor labels = (at::rand({kRows, kFindings}) > 0.5).to(at::kFloat);
  const LossResult found = loss(logits, labels, 2, 7);
  double sum = 0;
  int64_t rounded = 0;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t k = 0; k < kFindings; ++k) {
      const auto z = logits[i][k].item<double>();
      const bool positive = labels[i][k].item<float>() == 1;
      const auto finding = static_cast<size_t>(k);
      const double s = 1 / (1 + std::exp(-z));
      const double exact = positive ? -weights.positive[finding] * (1 - s)
                                    : weights.negative[finding] * s;
      const auto wanted = static_cast<float>(exact * (2.0 / 7.0));
      rounded += found.dlogits[i][k].item<float>() == wanted;
      sum += entry_loss(z, labels[i][k].item<float>(),
                        weights.positive[finding], weights.negative[finding]);
    }
  CHECK(rounded == kRows * kFindings);
  CHECK(found.sum.item<float>() == static_cast<float>(sum));
}

namespace {

// The formulas of the papers, term by term.
long double focal(long double p, bool positive, double gamma) {
  const long double truth = positive ? p : 1 - p;  // p_t
  return -std::pow(1 - truth, static_cast<long double>(gamma)) *
         std::log(truth);
}
long double asymmetric(long double p, bool positive, double gamma_positive,
                       double gamma_negative, double margin) {
  if (positive)
    return -std::pow(1 - p, static_cast<long double>(gamma_positive)) *
           std::log(p);
  const long double shifted = std::max(p - margin, 0.0L);
  return -std::pow(shifted, static_cast<long double>(gamma_negative)) *
         std::log(1 - shifted);
}
long double probability(long double z) { return 1 / (1 + std::exp(-z)); }

LossShape shape_of(LossKind kind, std::vector<double> gamma = {}) {
  TrainConfig config;
  config.loss = kind;
  config.loss_gamma = std::move(gamma);
  return loss_shape(config);
}

}  // namespace

TEST_CASE("focal and asymmetric loss are those of their papers") {
  const LossShape of_focal = shape_of(LossKind::kFocal),
                  of_asymmetric = shape_of(LossKind::kAsymmetric),
                  other = shape_of(LossKind::kAsymmetric, {1, 0.5});
  for (const double z : {-9.0, -2.95, -2.94, -0.4, 0.0, 0.7, 3.0, 12.0})
    for (const bool positive : {false, true}) {
      const auto found = [&](const LossShape& shape) {
        return entry_loss(z, positive ? 1.0f : 0.0f, 1, 1, shape);
      };
      const auto wanted = [](long double value) {
        return Approx(static_cast<double>(value)).epsilon(1e-12).margin(1e-18);
      };
      const long double p = probability(z);
      INFO(z << (positive ? ", positive" : ", negative"));
      CHECK(found(of_focal) == wanted(focal(p, positive, 2)));
      CHECK(found(of_asymmetric) ==
            wanted(asymmetric(p, positive, 0, 4, 0.05)));
      CHECK(found(other) == wanted(asymmetric(p, positive, 1, 0.5, 0.05)));
    }
}

// In both forms: entry by entry in fp32 on a CPU, and in LibTorch's functions.
TEST_CASE("the gradient of every loss is the slope of its value") {
  const double step = 1e-5;
  for (const LossShape& shape :
       {shape_of(LossKind::kBce), shape_of(LossKind::kFocal),
        shape_of(LossKind::kFocal, {0.5, 3}), shape_of(LossKind::kAsymmetric),
        shape_of(LossKind::kAsymmetric, {1, 0.5})}) {
    const LossWeights weights{{2, 0.5}, {1, 3}, shape};
    const BatchLoss wide(weights, at::TensorOptions(at::kDouble)),
        narrow(weights, at::TensorOptions(at::kFloat));
    for (const double z : {-6.0, -1.3, 0.0, 0.45, 2.5, 8.0})
      for (const double label : {0.0, 0.3, 1.0}) {
        const auto at_logit = [](double logit) {
          return at::full({1, 2}, logit, at::kDouble);
        };
        const at::Tensor labels = at::full({1, 2}, label, at::kDouble);
        const auto sum = [&](double logit) {
          return wide(at_logit(logit), labels, 1, 1).sum.item<double>();
        };
        INFO(shape.gamma_positive << ", " << shape.gamma_negative << ": " << z
                                  << ", label " << label);
        const LossResult found = wide(at_logit(z), labels, 1, 1);
        const double slope = (sum(z + step) - sum(z - step)) / (2 * step);
        CHECK(found.dlogits.sum().item<double>() ==
              Approx(slope).epsilon(1e-7).margin(1e-9));
        const LossResult rounded =
            narrow(at_logit(z).to(at::kFloat), labels.to(at::kFloat), 1, 1);
        CHECK(rounded.sum.item<float>() ==
              Approx(found.sum.item<double>()).epsilon(1e-6).margin(1e-12));
        CHECK(at::allclose(rounded.dlogits.to(at::kDouble), found.dlogits, 1e-6,
                           1e-9));
      }
  }
}

TEST_CASE("no loss overflows, and what is not a number stays so") {
  for (const LossShape& shape :
       {shape_of(LossKind::kFocal), shape_of(LossKind::kAsymmetric)}) {
    const BatchLoss loss({{1}, {1}, shape}, at::TensorOptions(at::kDouble));
    for (const double z : some_logits())
      for (const double label : {0.0, 1.0}) {
        const LossResult found =
            loss(at::full({1, 1}, z, at::kDouble),
                 at::full({1, 1}, label, at::kDouble), 1, 1);
        CHECK(std::isfinite(found.sum.item<double>()));
        CHECK(std::isfinite(found.dlogits.item<double>()));
        CHECK(std::isfinite(
            entry_loss(z, static_cast<float>(label), 1, 1, shape)));
      }
    const LossResult broken = loss(at::full({1, 1}, NAN, at::kDouble),
                                   at::zeros({1, 1}, at::kDouble), 1, 1);
    CHECK(std::isnan(broken.sum.item<double>()));
    CHECK(std::isnan(broken.dlogits.item<double>()));
  }
}
