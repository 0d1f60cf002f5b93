#include "chexnet/model/loss.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "chexnet/core/error.hpp"

namespace chexnet {

namespace {

double at_least(double least, double z) { return std::max(z, least); }
at::Tensor at_least(double least, const at::Tensor& z) {
  return z.clamp_min(least);
}

// The formula, of a number or of a tensor. `up` is the weight of -log s(z) =
// softplus(-z), `down` that of -log(1 - s(z)) = softplus(z).
// softplus(z) = max(z, 0) + log1p(exp(-|z|)), the form of PyTorch's
// BCEWithLogitsLoss.
template <class Value>
Value weighted_softplus(const Value& z, const Value& up, const Value& down) {
  using std::abs;
  using std::exp;
  using std::log1p;
  const Value small = log1p(exp(-abs(z)));
  return up * (at_least(0, -z) + small) + down * (at_least(0, z) + small);
}

// With s = sigmoid(z): d/dz of -up log s - down log(1 - s).
template <class Value>
Value slope(const Value& probability, const Value& up, const Value& down) {
  return down * probability - up * (1 - probability);
}

double is_not_0(double a) { return a == 0 ? 0 : 1; }
at::Tensor is_not_0(const at::Tensor& a) { return (a != 0).to(a.dtype()); }

// Loss and slope of entries with the weights `up` of a positive and `down` of a
// negative, in the shape's formula. With p = s(z), q = 1 - p, and c the
// logarithm's part of a term:
//   d/dz q^g c       = -q^g (g p c + q)                c = -log p
//   d/dz p_m^g c     = p_m^g (g c / p_m + 1 / (1 - p_m)) p q   c = -log(1 -
//   p_m)
// where p_m > 0; without a margin p_m^g (g q c + p).
template <class Value>
struct Shaped {
  Value loss, slope;
};
template <class Value>
Shaped<Value> shaped(const Value& z, const Value& up, const Value& down,
                     const LossShape& shape) {
  using std::abs;
  using std::exp;
  using std::log1p;
  using std::pow;
  const Value p = 1 / (1 + exp(-z)), q = 1 / (1 + exp(z));
  const Value small = log1p(exp(-abs(z)));
  const Value of_positive = at_least(0, -z) + small;
  const double g = shape.gamma_positive, h = shape.gamma_negative;
  const Value weight = up * pow(q, g);
  if (shape.margin == 0) {
    const Value of_negative = at_least(0, z) + small;
    const Value other = down * pow(p, h);
    return {
        weight * of_positive + other * of_negative,
        other * (h * q * of_negative + p) - weight * (g * p * of_positive + q)};
  }
  constexpr double kSmallest = std::numeric_limits<double>::min();
  const Value shifted = at_least(0, p - shape.margin);
  const Value of_negative = -log1p(-shifted);
  const Value other = down * pow(shifted, h);
  return {weight * of_positive + other * of_negative,
          other * is_not_0(shifted) *
                  (h * of_negative / at_least(kSmallest, shifted) +
                   1 / (1 - shifted)) *
                  p * q -
              weight * (g * p * of_positive + q)};
}

// LibTorch's sigmoid of doubles differs in its last bit between AVX2 and
// AVX-512, where 8 to 15 are left after blocks of 16; exp does not.
template <class Value>
Shaped<Value> loss_of(const Value& z, const Value& up, const Value& down,
                      const LossShape& shape) {
  using std::exp;
  if (!shape.is_cross_entropy()) return shaped(z, up, down, shape);
  const Value probability = 1 / (1 + exp(-z));
  return {weighted_softplus(z, up, down), slope(probability, up, down)};
}

struct Counts {
  double positives = 0, negatives = 0;
};

Counts count(const Manifest& manifest, const Split& split, size_t finding) {
  Counts counts;
  for (const auto row : split.rows) {
    const float label = manifest.label_row(row)[finding];
    if (label == 1) ++counts.positives;
    if (label == 0) ++counts.negatives;
  }
  return counts;
}

// In double, with the C library's functions: LibTorch's exp differs in its last
// bit between AVX2 and AVX-512, and its sums in their order. The engine's
// passes do not, so processors of both kinds end with the same weights.
LossResult entry_by_entry(const at::Tensor& logits, const at::Tensor& up,
                          const at::Tensor& down, const LossShape& shape,
                          double scale) {
  const at::Tensor z = logits.contiguous(), plus = up.contiguous(),
                   minus = down.contiguous();
  at::Tensor dlogits = at::empty_like(z);
  double sum = 0;
  for (int64_t i = 0; i < z.numel(); ++i) {
    const double logit = z.const_data_ptr<float>()[i];
    const double u = plus.const_data_ptr<float>()[i],
                 d = minus.const_data_ptr<float>()[i];
    const Shaped<double> entry = loss_of(logit, u, d, shape);
    sum += entry.loss;
    dlogits.mutable_data_ptr<float>()[i] =
        static_cast<float>(entry.slope * scale);
  }
  return {at::scalar_tensor(sum, z.options()), dlogits};
}

}  // namespace

LossWeights no_loss_weights(const Manifest& manifest) {
  const std::vector<double> ones(manifest.finding_count(), 1.0);
  return {ones, ones};
}

LossWeights loss_weights(const TrainConfig& config, const Manifest& manifest,
                         const Split& split) {
  const size_t findings = manifest.finding_count();
  LossWeights weights = no_loss_weights(manifest);
  weights.shape = loss_shape(config);
  const LossWeighting kind = config.class_weights;
  if (kind == LossWeighting::kNone) return weights;
  for (size_t k = 0; k < findings; ++k) {
    const auto [positives, negatives] = count(manifest, split, k);
    const double entries = positives + negatives;
    // With softened labels all images would push its probability one way.
    if (positives == 0 || negatives == 0) {
      weights.positive[k] = weights.negative[k] = 0;
    } else if (kind == LossWeighting::kPosWeight) {
      weights.positive[k] = negatives / positives;
    } else {
      weights.positive[k] = negatives / entries;
      weights.negative[k] = positives / entries;
    }
  }
  return weights;
}

double entry_loss(double logit, float label, double positive, double negative,
                  const LossShape& shape) {
  assert(label == 0 || label == 1);
  const bool is_positive = label > 0.5f;
  return loss_of(logit, is_positive ? positive : 0.0,
                 is_positive ? 0.0 : negative, shape)
      .loss;
}

BatchLoss::BatchLoss(const LossWeights& weights, const at::TensorOptions& like)
    : positive_(at::tensor(weights.positive, at::kDouble)
                    .to(like.device(), c10::typeMetaToScalarType(like.dtype()))
                    .unsqueeze(0)),
      negative_(at::tensor(weights.negative, at::kDouble)
                    .to(like.device(), c10::typeMetaToScalarType(like.dtype()))
                    .unsqueeze(0)),
      shape_(weights.shape) {}

// A label that is not known (NaN) has both weights 0, so it counts in neither.
LossResult BatchLoss::operator()(const at::Tensor& logits,
                                 const at::Tensor& labels, double scale,
                                 const at::Tensor& entries,
                                 const at::Tensor& sample_weights) const {
  const at::Tensor labeled = at::isnan(labels).logical_not();
  // An infinite one stays: the largest finite number instead might pass.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor y = at::nan_to_num(labels, 0.0, kInfinity, -kInfinity);
  at::Tensor mask = labeled.to(logits.scalar_type());
  if (sample_weights.defined()) mask = mask * sample_weights;
  const at::Tensor up = positive_ * y * mask;
  const at::Tensor down = negative_ * (1 - y) * mask;
  if (logits.is_cpu() && logits.scalar_type() == at::kFloat)
    return entry_by_entry(logits, up, down, shape_,
                          scale / *entries.const_data_ptr<double>());
  // On a GPU in double as well, so that it can be compared with the CPU.
  const auto type = logits.scalar_type();
  const auto wide = [type](const at::Tensor& values) {
    return type == at::kFloat ? values.to(at::kDouble) : values;
  };
  const at::Tensor z = wide(logits), u = wide(up), d = wide(down);
  const Shaped<at::Tensor> entries_of = loss_of(z, u, d, shape_);
  const at::Tensor dlogits = entries_of.slope * scale / entries;
  return {entries_of.loss.sum().to(type), dlogits.to(type)};
}

LossResult BatchLoss::operator()(const at::Tensor& logits,
                                 const at::Tensor& labels, double scale,
                                 double entries,
                                 const at::Tensor& sample_weights) const {
  return (*this)(logits, labels, scale, at::scalar_tensor(entries, at::kDouble),
                 sample_weights);
}

}  // namespace chexnet
