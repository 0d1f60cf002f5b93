#include "chexnet/model/loss.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "chexnet/core/error.hpp"

namespace chexnet {

namespace {

double at_least_0(double z) { return std::max(z, 0.0); }
at::Tensor at_least_0(const at::Tensor& z) { return z.clamp_min(0); }

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
  return up * (at_least_0(-z) + small) + down * (at_least_0(z) + small);
}

// With s = sigmoid(z): d/dz of -up log s - down log(1 - s).
template <class Value>
Value slope(const Value& probability, const Value& up, const Value& down) {
  return down * probability - up * (1 - probability);
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
// bit between AVX2 and AVX-512, and what it adds up, in the order. The engine's
// passes do not, so processors of both kinds end with the same weights.
LossResult entry_by_entry(const at::Tensor& logits, const at::Tensor& up,
                          const at::Tensor& down, double scale) {
  const at::Tensor z = logits.contiguous(), plus = up.contiguous(),
                   minus = down.contiguous();
  at::Tensor dlogits = at::empty_like(z);
  double sum = 0;
  for (int64_t i = 0; i < z.numel(); ++i) {
    const double logit = z.const_data_ptr<float>()[i];
    const double u = plus.const_data_ptr<float>()[i],
                 d = minus.const_data_ptr<float>()[i];
    sum += weighted_softplus(logit, u, d);
    dlogits.mutable_data_ptr<float>()[i] =
        static_cast<float>(slope(1 / (1 + std::exp(-logit)), u, d) * scale);
  }
  return {at::scalar_tensor(sum, z.options()), dlogits};
}

}  // namespace

LossWeights loss_weights(LossWeighting kind, const Manifest& manifest,
                         const Split& split) {
  const size_t findings = manifest.finding_count();
  LossWeights weights{std::vector<double>(findings, 1.0),
                      std::vector<double>(findings, 1.0)};
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

double entry_loss(double logit, float label, double positive, double negative) {
  assert(label == 0 || label == 1);
  const bool is_positive = label > 0.5f;
  return weighted_softplus(logit, is_positive ? positive : 0.0,
                           is_positive ? 0.0 : negative);
}

BinaryCrossEntropy::BinaryCrossEntropy(const LossWeights& weights,
                                       const at::TensorOptions& like)
    : positive_(at::tensor(weights.positive, at::kDouble)
                    .to(like.device(), c10::typeMetaToScalarType(like.dtype()))
                    .unsqueeze(0)),
      negative_(at::tensor(weights.negative, at::kDouble)
                    .to(like.device(), c10::typeMetaToScalarType(like.dtype()))
                    .unsqueeze(0)) {}

// A label that is not known (NaN) has both weights 0, so it counts in neither.
LossResult BinaryCrossEntropy::operator()(
    const at::Tensor& logits, const at::Tensor& labels, double scale,
    const at::Tensor& entries, const at::Tensor& sample_weights) const {
  const at::Tensor labeled = at::isnan(labels).logical_not();
  // An infinite one stays: a largest finite number in its place might pass.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor y = at::nan_to_num(labels, 0.0, kInfinity, -kInfinity);
  at::Tensor mask = labeled.to(logits.scalar_type());
  if (sample_weights.defined()) mask = mask * sample_weights;
  const at::Tensor up = positive_ * y * mask;
  const at::Tensor down = negative_ * (1 - y) * mask;
  if (logits.is_cpu() && logits.scalar_type() == at::kFloat)
    return entry_by_entry(logits, up, down,
                          scale / *entries.const_data_ptr<double>());
  // On a GPU in double as well, so that it can be compared with the CPU.
  const auto type = logits.scalar_type();
  const auto wide = [type](const at::Tensor& values) {
    return type == at::kFloat ? values.to(at::kDouble) : values;
  };
  const at::Tensor z = wide(logits), u = wide(up), d = wide(down);
  const at::Tensor loss = weighted_softplus(z, u, d).sum();
  // LibTorch's sigmoid of doubles differs in its last bit between AVX2 and
  // AVX-512, where 8 to 15 are left after blocks of 16; exp does not.
  const at::Tensor probability = 1 / (1 + at::exp(-z));
  const at::Tensor dlogits = slope(probability, u, d) * scale / entries;
  return {loss.to(type), dlogits.to(type)};
}

LossResult BinaryCrossEntropy::operator()(
    const at::Tensor& logits, const at::Tensor& labels, double scale,
    double entries, const at::Tensor& sample_weights) const {
  return (*this)(logits, labels, scale, at::scalar_tensor(entries, at::kDouble),
                 sample_weights);
}

}  // namespace chexnet
