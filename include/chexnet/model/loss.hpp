// The loss of logits over labeled entries, with its gradient: binary
// cross-entropy, or a form of it in which entries that are scored well count
// less.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/config/loss_shape.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/split.hpp"

namespace chexnet {

// Weight of a positive and of a negative cell, per finding; 1 where the config
// sets none.
struct LossWeights {
  std::vector<double> positive, negative;  // [K]
  LossShape shape{};
};
// Cross-entropy of all entries alike.
LossWeights no_loss_weights(const Manifest& manifest);
// The loss of a training on `split`, by train.loss, train.loss_gamma and
// train.class_weights.
// kNone: 1. kPosWeight: positive = negatives/positives (PyTorch's pos_weight).
// kBalanced: positive = |N|/(|P|+|N|), negative = |P|/(|P|+|N|) (Rajpurkar et
// al., CheXNet, section 2.1, for the single output of pneumonia). Counted over
// labeled entries of the split. A finding without positives or without
// negatives has by these formulas no loss on the split; where pos_weight has no
// value (no positive), and where nothing is labeled, both weights are 0. Cells
// of weight 0 stay in the number of entries that the mean is over.
LossWeights loss_weights(const TrainConfig& config, const Manifest& manifest,
                         const Split& split);

struct LossResult {
  // Scalar in the logits' type: weighted loss summed over labeled entries.
  at::Tensor sum;
  at::Tensor dlogits;  // [N,K]: gradient of sum * scale / entries
};

// l = w+ y positive + w- (1-y) negative of LossShape; the logarithms are
// computed as softplus so that they never overflow. Training and evaluation use
// the same formula: the class for a batch in the network's type, entry_loss for
// one labeled entry (1 or 0) in double.
double entry_loss(double logit, float label, double positive, double negative,
                  const LossShape& shape = {});

// labels [N,K] in the logits' type, 0..1 (between them: uncertain, smoothed or
// mixed), NaN = not labeled (no loss, no gradient). sample_weights [N,1]: of
// each image's loss (PyTorch's `weight`); undefined: 1. Neither changes
// `entries`, a number of the logits' device or the host, fp64.
class BatchLoss {
 public:
  BatchLoss(const LossWeights& weights, const at::TensorOptions& like);
  LossResult operator()(const at::Tensor& logits, const at::Tensor& labels,
                        double scale, const at::Tensor& entries,
                        const at::Tensor& sample_weights = {}) const;
  LossResult operator()(const at::Tensor& logits, const at::Tensor& labels,
                        double scale, double entries,
                        const at::Tensor& sample_weights = {}) const;

 private:
  at::Tensor positive_, negative_;  // [1,K]
  LossShape shape_;
};

}  // namespace chexnet
