// One training step of the same network computed twice, by two back ends or on
// two devices, and compared layer by layer. The reference is the CPU engine in
// fp64; everything else must agree with it.
//
// The step is synthetic: 4 images of 64 pixels, weights from a seed. The biases
// of BatchNorm keep almost every value away from ReLU's corner. Near it
// rounding decides whether a gradient passes, and over 120 layers two correct
// 16-bit computations would differ by 70 %.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/config/choices.hpp"
#include "chexnet/model/network.hpp"

namespace chexnet {

// Results of one step, on the host and in double.
struct StepRecord {
  at::Tensor logits;      // [N,K], of the training step
  at::Tensor gradients;   // flat, weights row-major, then batch statistics
  at::Tensor evaluation;  // [N,K]: logits by the running statistics after it
};
// Sets parameters and statistics of `network` to those of the synthetic step
// and computes it where the network lies. Equal networks see equal numbers.
StepRecord record_synthetic_step(Network& network);

// Where two computations of a layer differ most.
struct LayerDifference {
  std::string layer;      // "features.norm0"; "logits", "logits of evaluation"
  std::string what;       // "statistics", "logits", "gradients"
  double difference = 0;  // 2-norm of the difference over the reference's
  double allowed = 0;
  // False of a NaN too.
  bool agrees() const { return difference <= allowed; }
  // Difference in units of what is allowed.
  double of_allowed() const { return difference / allowed; }
};

// Of every layer, in the order in which a step computes it: statistics forward,
// logits, gradients backward, logits of evaluation. So the first that disagrees
// is where it went wrong. `layout` is that of both networks, `precision` that
// of `found`.
std::vector<LayerDifference> layer_differences(const StepRecord& found,
                                               const StepRecord& reference,
                                               const Parameters& layout,
                                               Precision precision);

// "" where all agree, or one sentence: the last layer that agrees, the first
// that does not and by how much.
std::string first_disagreement(const std::vector<LayerDifference>& layers);
// Two digits: "1.8e-05".
std::string difference_text(double difference);
// The layer with the largest of_allowed(). `layers` is not empty.
const LayerDifference& worst_of(const std::vector<LayerDifference>& layers);

}  // namespace chexnet
