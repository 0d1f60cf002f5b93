#include "own_operators.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>

#include "operator_of.hpp"

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

constexpr size_t kVectorBytes = 16;

// --- by ATen's operators: the reference, and what the CPU computes

ThreeTensors training_by_aten(const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& bias, at::Tensor& kept_mean,
                              at::Tensor& kept_var, double momentum,
                              double epsilon, const OptionalTensor& shortcut,
                              bool relu) {
  auto [y, mean, invstd, reserve] = at::_batch_norm_with_update(
      x, weight, bias, kept_mean, kept_var, momentum, epsilon);
  // Of one value per channel the operator makes the unbiased variance 0/0.
  if (x.numel() == x.size(1)) kept_var.zero_();
  add_and_cut(y, shortcut, relu);
  return {y, mean, invstd};
}

at::Tensor inference_by_aten(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, const at::Tensor& mean,
                             const at::Tensor& var, double epsilon,
                             const OptionalTensor& shortcut, bool relu) {
  at::Tensor y = std::get<0>(
      at::native_batch_norm(x, weight, bias, mean, var, false, 0.0, epsilon));
  add_and_cut(y, shortcut, relu);
  return y;
}

ThreeTensors gradients_by_aten(const at::Tensor& dy, const at::Tensor& x,
                               const at::Tensor& weight, const at::Tensor& bias,
                               const at::Tensor& mean, const at::Tensor& invstd,
                               double epsilon, const OptionalTensor& more,
                               bool relu) {
  at::Tensor masked = dy;
  // y as forward computed it: of another rounding, ReLU would cut elsewhere.
  if (relu)
    masked =
        at::threshold_backward(dy,
                               std::get<0>(at::native_batch_norm(
                                   x, weight, bias, {}, {}, true, 0, epsilon)),
                               0);
  auto [dx, dweight, dbias] =
      at::native_batch_norm_backward(masked, x, weight, {}, {}, mean, invstd,
                                     true, epsilon, {true, true, true});
  if (more) dx.add_(*more);
  return {dx, dweight, dbias};
}

std::tuple<at::Tensor, at::Tensor> max_pool_by_aten(const at::Tensor& x) {
  return at::max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1});
}

// Of what was pooled, ATen's operators look at the shape alone.
at::Tensor shaped(at::IntArrayRef shape, at::MemoryFormat format,
                  const at::Tensor& dy) {
  return at::empty(shape, dy.options().memory_format(format));
}

at::Tensor max_pool_backward_by(at::MemoryFormat format, const at::Tensor& dy,
                                at::IntArrayRef shape,
                                const at::Tensor& indices) {
  return at::max_pool2d_with_indices_backward(dy, shaped(shape, format, dy),
                                              {3, 3}, {2, 2}, {1, 1}, {1, 1},
                                              false, indices);
}

at::Tensor max_pool_backward_by_aten(const at::Tensor& dy,
                                     at::IntArrayRef shape,
                                     const at::Tensor& indices) {
  return max_pool_backward_by(at::MemoryFormat::ChannelsLast, dy, shape,
                              indices);
}

at::Tensor average_pool_by_aten(const at::Tensor& x) {
  return at::avg_pool2d(x, {2, 2}, {2, 2});
}

at::Tensor average_pool_backward_by(at::MemoryFormat format,
                                    const at::Tensor& dy,
                                    at::IntArrayRef shape) {
  return at::avg_pool2d_backward(dy, shaped(shape, format, dy), {2, 2}, {2, 2},
                                 {0, 0}, false, true, c10::nullopt);
}

at::Tensor average_pool_backward_by_aten(const at::Tensor& dy,
                                         at::IntArrayRef shape) {
  return average_pool_backward_by(at::MemoryFormat::ChannelsLast, dy, shape);
}

at::Tensor relu_backward_by_aten(const at::Tensor& dy,
                                 const OptionalTensor& more,
                                 const at::Tensor& y) {
  return at::threshold_backward(more ? dy + *more : dy, y, 0);
}

// --- the dispatcher's

}  // namespace

at::Tensor dense(const at::Tensor& dy) {
  return dy.contiguous(at::MemoryFormat::ChannelsLast);
}

void add_and_cut(at::Tensor& y, const OptionalTensor& shortcut, bool relu) {
  if (shortcut) y.add_(*shortcut);
  if (relu) y.relu_();
}

bool own_kernels_take(const at::Tensor& x) {
  const auto type = x.scalar_type();
  return !x.is_cpu() &&
         (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         static_cast<size_t>(x.size(1)) * x.element_size() % kVectorBytes ==
             0 &&
         x.nbytes() / kVectorBytes <= std::numeric_limits<int32_t>::max();
}

ThreeTensors batch_norm_training(const BatchNormInput& input,
                                 at::Tensor& kept_mean, at::Tensor& kept_var,
                                 double momentum,
                                 const OptionalTensor& shortcut) {
  static const auto op = operator_of<training_by_aten>("batch_norm");
  return op.call(input.x, input.weight, input.bias, kept_mean, kept_var,
                 momentum, kBatchNormEpsilon, shortcut, input.relu);
}

at::Tensor batch_norm_inference(const BatchNormInput& input,
                                const at::Tensor& mean, const at::Tensor& var,
                                const OptionalTensor& shortcut, bool kernels) {
  if (!kernels)
    return inference_by_aten(input.x, input.weight, input.bias, mean, var,
                             kBatchNormEpsilon, shortcut, input.relu);
  static const auto op = operator_of<inference_by_aten>("batch_norm_inference");
  return op.call(input.x, input.weight, input.bias, mean, var,
                 kBatchNormEpsilon, shortcut, input.relu);
}

ThreeTensors batch_norm_gradients(const at::Tensor& dy,
                                  const BatchNormInput& input,
                                  const at::Tensor& mean,
                                  const at::Tensor& invstd,
                                  const OptionalTensor& more) {
  static const auto op = operator_of<gradients_by_aten>("batch_norm_backward");
  return op.call(dy, input.x, input.weight, input.bias, mean, invstd,
                 kBatchNormEpsilon, more, input.relu);
}

std::tuple<at::Tensor, at::Tensor> max_pool(const at::Tensor& x, bool kernels) {
  if (!kernels) return max_pool_by_aten(x);
  static const auto op = operator_of<max_pool_by_aten>("max_pool");
  return op.call(x);
}

at::Tensor max_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                             at::MemoryFormat format, const at::Tensor& chosen,
                             bool kernels) {
  if (!kernels) return max_pool_backward_by(format, dy, shape, chosen);
  static const auto op =
      operator_of<max_pool_backward_by_aten>("max_pool_backward");
  return op.call(dense(dy), shape, chosen);
}

at::Tensor average_pool(const at::Tensor& x, bool kernels) {
  if (!kernels) return average_pool_by_aten(x);
  static const auto op = operator_of<average_pool_by_aten>("average_pool");
  return op.call(x);
}

at::Tensor average_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                                 at::MemoryFormat format, bool kernels) {
  if (!kernels) return average_pool_backward_by(format, dy, shape);
  static const auto op =
      operator_of<average_pool_backward_by_aten>("average_pool_backward");
  return op.call(dense(dy), shape);
}

at::Tensor relu_gradient(const at::Tensor& dy, const OptionalTensor& more,
                         const at::Tensor& y, bool kernels) {
  if (!kernels) return relu_backward_by_aten(dy, more, y);
  static const auto op = operator_of<relu_backward_by_aten>("relu_backward");
  return op.call(dense(dy), more, y);
}

}  // namespace chexnet

TORCH_LIBRARY(chexnet, library) {
  library.def(
      "batch_norm(Tensor x, Tensor weight, Tensor bias, Tensor(a!) kept_mean, "
      "Tensor(b!) kept_var, float momentum, float epsilon, Tensor? shortcut, "
      "bool relu) -> (Tensor, Tensor, Tensor)");
  library.def(
      "batch_norm_inference(Tensor x, Tensor weight, Tensor bias, Tensor mean, "
      "Tensor var, float epsilon, Tensor? shortcut, bool relu) -> Tensor");
  library.def(
      "batch_norm_backward(Tensor dy, Tensor x, Tensor weight, "
      "Tensor bias, Tensor mean, Tensor invstd, float epsilon, Tensor? more, "
      "bool relu) -> (Tensor, Tensor, Tensor)");
  library.def("max_pool(Tensor x) -> (Tensor, Tensor)");
  library.def(
      "max_pool_backward(Tensor dy, int[] shape, Tensor chosen) -> Tensor");
  library.def("average_pool(Tensor x) -> Tensor");
  library.def("average_pool_backward(Tensor dy, int[] shape) -> Tensor");
  library.def("relu_backward(Tensor dy, Tensor? more, Tensor y) -> Tensor");
}

TORCH_LIBRARY_IMPL(chexnet, CPU, library) {
  library.impl("batch_norm", chexnet::training_by_aten);
  library.impl("batch_norm_inference", chexnet::inference_by_aten);
  library.impl("batch_norm_backward", chexnet::gradients_by_aten);
  library.impl("max_pool", chexnet::max_pool_by_aten);
  library.impl("max_pool_backward", chexnet::max_pool_backward_by_aten);
  library.impl("average_pool", chexnet::average_pool_by_aten);
  library.impl("average_pool_backward", chexnet::average_pool_backward_by_aten);
  library.impl("relu_backward", chexnet::relu_backward_by_aten);
}
