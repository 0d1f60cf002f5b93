// BatchNorm, ReLU and the convolution that alone reads their result: most
// layers of both networks.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "batch_norm.hpp"
#include "layers.hpp"

namespace chexnet {

class NormConvolution {
 public:
  NormConvolution(const LayerContext& context, const std::string& norm,
                  const std::string& convolution,
                  ConvolutionWindow window = {});
  // As BatchNorm's, and the convolution of that.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass,
                     const MapStatistics& known = {});
  // As BatchNorm's.
  at::Tensor backward(const at::Tensor& dy, const MicroBatch& micro_batch);
  void backward_onto(ReadersGradient& sum, const at::Tensor& dy,
                     const MicroBatch& micro_batch);

 private:
  at::Tensor through_convolution(const at::Tensor& dy,
                                 const MicroBatch& micro_batch);
  bool recompute_;
  BatchNorm norm_;
  Convolution convolution_;
};

}  // namespace chexnet
