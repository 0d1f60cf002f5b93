// The convolutional part of a network on ATen's operators: images [N,3,H,W] ->
// features [N,C,h,w], ready for the classifier head.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "batch_norm.hpp"
#include "chexnet/model/engine/network_spec.hpp"
#include "norm_convolution.hpp"

namespace chexnet {

class Backbone {
 public:
  virtual ~Backbone() = default;
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) {
    return from_middle(to_middle(x, pass), pass);
  }
  // The middle is the last map whose pixel is 8 of the input's.
  virtual at::Tensor to_middle(const at::Tensor& x,
                               const ForwardPass& pass) = 0;
  virtual at::Tensor from_middle(const at::Tensor& middle,
                                 const ForwardPass& pass) = 0;
  // Of all but the network's first `frozen_parts`.
  virtual void backward(const at::Tensor& dy, const MicroBatch& part,
                        int frozen_parts) = 0;
};

std::unique_ptr<Backbone> make_backbone(const LayerContext& context,
                                        const NetworkSpec& spec);
std::unique_ptr<Backbone> make_densenet(const LayerContext& context,
                                        const DenseNetSpec& spec);
std::unique_ptr<Backbone> make_resnet(const LayerContext& context,
                                      const ResNetSpec& spec);

}  // namespace chexnet
