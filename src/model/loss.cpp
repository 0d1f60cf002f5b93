#include "chexnet/model/loss.hpp"

#include <ATen/ATen.h>

#include "chexnet/core/error.hpp"

namespace chexnet {

namespace {

struct Counts {
  double positives = 0, negatives = 0;
};

Counts count(const Manifest& manifest, const Split& split, std::size_t finding) {
  Counts counts;
  for (const auto row : split.rows) {
    const float label = manifest.label_row(row)[finding];
    if (label == 1) ++counts.positives;
    if (label == 0) ++counts.negatives;
  }
  return counts;
}

}  // namespace

LossWeights loss_weights(LossWeighting kind, const Manifest& manifest, const Split& split) {
  const std::size_t findings = manifest.finding_count();
  LossWeights weights{std::vector<double>(findings, 1.0), std::vector<double>(findings, 1.0)};
  if (kind == LossWeighting::kNone) return weights;
  for (std::size_t k = 0; k < findings; ++k) {
    const auto [positives, negatives] = count(manifest, split, k);
    const double entries = positives + negatives;
    if (entries == 0 || (kind == LossWeighting::kPosWeight && positives == 0)) {
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

BinaryCrossEntropy::BinaryCrossEntropy(const LossWeights& weights, const at::TensorOptions& like)
    : positive_(at::tensor(weights.positive, at::kDouble)
                    .to(like.device(), c10::typeMetaToScalarType(like.dtype()))
                    .unsqueeze(0)),
      negative_(at::tensor(weights.negative, at::kDouble)
                    .to(like.device(), c10::typeMetaToScalarType(like.dtype()))
                    .unsqueeze(0)) {}

LossResult BinaryCrossEntropy::operator()(const at::Tensor& logits, const at::Tensor& labels,
                                          double scale, double entries) const {
  const at::Tensor labeled = at::isnan(labels).logical_not();
  const at::Tensor y = at::nan_to_num(labels, 0.0);
  const at::Tensor mask = labeled.to(logits.scalar_type());
  const at::Tensor up = positive_ * y * mask;          // weight of -log s(z) = softplus(-z)
  const at::Tensor down = negative_ * (1 - y) * mask;  // weight of -log(1 - s(z)) = softplus(z)
  // softplus(z) = max(z, 0) + log1p(exp(-|z|)), the form of PyTorch's BCEWithLogitsLoss.
  const at::Tensor tail = at::log1p(at::exp(-logits.abs()));
  const at::Tensor loss =
      up * ((-logits).clamp_min(0) + tail) + down * (logits.clamp_min(0) + tail);
  const at::Tensor probability = at::sigmoid(logits);
  return {loss.sum(), (down * probability - up * (1 - probability)) * scale / entries};
}

}  // namespace chexnet
