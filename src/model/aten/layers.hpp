// The building blocks, and BatchNorm in batch_norm.hpp, each with an explicit
// forward and backward on ATen operators: no autograd, no torch::nn. A layer
// finds its parameters by name, so they are described before
// (architecture.hpp). It keeps what its backward needs between the two calls
// and drops it in backward. Tensors are [N, C, H, W] in the context's memory
// format, in the compute type. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "layer_context.hpp"

namespace chexnet {

struct ConvolutionWindow {
  int64_t stride = 1, padding = 0;
};

class Convolution {
 public:
  Convolution(const LayerContext& context, const std::string& name,
              ConvolutionWindow window = {});
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass);
  // Lets go of x; backward is given it again by restore_input().
  void drop_input() { x_.reset(); }
  void restore_input(const at::Tensor& x) { x_ = x; }
  at::Tensor backward(const at::Tensor& dy, const MicroBatch& micro_batch);
  // Of the network's first layer: nobody needs the gradient of the images.
  void backward_weight(const at::Tensor& dy, const MicroBatch& micro_batch);

 private:
  at::Tensor gradients(const at::Tensor& dy, const MicroBatch& micro_batch,
                       bool needs_dx);
  const LayerContext& context_;
  ConvolutionWindow window_;
  int weight_;
  at::Tensor x_;
};

// The gradient dy (+ residual) of y = ReLU(...) on its other side.
at::Tensor masked_by(const at::Tensor& y, const at::Tensor& dy,
                     const std::optional<at::Tensor>& residual,
                     const LayerContext& context);

// Mean over the map, then a linear layer: [N,C,H,W] -> logits [N,K]. Both in
// the type of the masters whatever the map is in, as the engine's head: 16-bit
// logits would tie scores.
class Classifier {
 public:
  Classifier(const LayerContext& context, const std::string& name);
  at::Tensor forward(const at::Tensor& x, Mode mode);
  at::Tensor backward(const at::Tensor& dlogits, const MicroBatch& micro_batch);
  // The gradient by a map of this shape alone, in the master type.
  at::Tensor feature_gradient(const at::Tensor& dlogits,
                              at::IntArrayRef map_shape) const;

 private:
  const LayerContext& context_;
  int weight_, bias_;
  at::Tensor pooled_;
  std::vector<int64_t> map_shape_;
  at::ScalarType map_type_ = at::kFloat;
};

}  // namespace chexnet
