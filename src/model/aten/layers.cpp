// A layer keeps from forward what backward needs, and backward frees it
// (std::exchange), so memory falls during backward. Inference keeps nothing.
#include "layers.hpp"

#include <ATen/ATen.h>

#include <cassert>
#include <utility>

#include "own_operators.hpp"

namespace chexnet {

Convolution::Convolution(const LayerContext& context, const std::string& name,
                         ConvolutionWindow window)
    : context_(context),
      window_(window),
      weight_(context.parameters.id_of(name + ".weight")) {}

at::Tensor Convolution::forward(const at::Tensor& x, const ForwardPass& pass) {
  const at::Tensor weight = context_.parameters.compute(weight_);
  assert(x.size(1) == weight.size(1));
  if (pass.training()) x_ = x;
  return at::convolution(x, weight, {}, {window_.stride, window_.stride},
                         {window_.padding, window_.padding}, {1, 1}, false,
                         {0, 0}, 1);
}

at::Tensor Convolution::backward(const at::Tensor& dy,
                                 const MicroBatch& micro_batch) {
  return gradients(dy, micro_batch, true);
}
void Convolution::backward_weight(const at::Tensor& dy,
                                  const MicroBatch& micro_batch) {
  gradients(dy, micro_batch, false);
}

at::Tensor Convolution::gradients(const at::Tensor& dy,
                                  const MicroBatch& micro_batch,
                                  bool needs_dx) {
  const at::Tensor x = std::exchange(x_, {});
  assert(x.defined());  // a forward in training came before
  auto [dx, dw, db] = at::convolution_backward(
      dy, x, context_.parameters.compute(weight_), c10::nullopt,
      {window_.stride, window_.stride}, {window_.padding, window_.padding},
      {1, 1}, false, {0, 0}, 1, {needs_dx, true, false});
  context_.gradients.add(weight_, dw, micro_batch);
  return dx;
}

at::Tensor masked_by(const at::Tensor& y, const at::Tensor& dy,
                     const std::optional<at::Tensor>& residual,
                     const LayerContext& context) {
  return relu_gradient(dy, residual, y, context.kernels && own_kernels_take(y));
}

Classifier::Classifier(const LayerContext& context, const std::string& name)
    : context_(context),
      weight_(context.parameters.id_of(name + ".weight")),
      bias_(context.parameters.id_of(name + ".bias")) {}

at::Tensor Classifier::forward(const at::Tensor& x, Mode mode) {
  const Parameters& p = context_.parameters;
  const at::Tensor weight = p.value(weight_);
  const at::Tensor pooled =
      x.mean(at::IntArrayRef{2, 3}, false, weight.scalar_type());
  if (mode == Mode::kTraining) {
    pooled_ = pooled;
    map_shape_ = x.sizes().vec();
    map_type_ = x.scalar_type();
  }
  return at::addmm(p.value(bias_), pooled, weight.t());
}

// The gradient of a mean over pixels is the same at each of them.
at::Tensor Classifier::feature_gradient(const at::Tensor& dlogits,
                                        at::IntArrayRef map_shape) const {
  const at::Tensor dpooled =
      at::mm(dlogits, context_.parameters.value(weight_));
  const auto pixels = static_cast<double>(map_shape[2] * map_shape[3]);
  return (dpooled / pixels)
      .view({map_shape[0], map_shape[1], 1, 1})
      .expand(map_shape);
}

at::Tensor Classifier::backward(const at::Tensor& dlogits,
                                const MicroBatch& micro_batch) {
  const at::Tensor pooled = std::exchange(pooled_, {});
  assert(pooled.defined() && pooled.size(0) == dlogits.size(0));
  context_.gradients.add(bias_, dlogits.sum(0), micro_batch);
  context_.gradients.add(weight_, at::mm(dlogits.t(), pooled), micro_batch);
  return feature_gradient(dlogits, map_shape_)
      .to(map_type_)
      .contiguous(context_.memory_format);
}

}  // namespace chexnet
