#include "own_operators.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>
#include <string>
#include <type_traits>

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

constexpr double kEpsilon = 1e-5;  // torchvision's
constexpr size_t kVectorBytes = 16;

// --- on the CPU: ATen's operators

ThreeTensors training_on_cpu(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, at::Tensor& kept_mean,
                             at::Tensor& kept_var, double momentum,
                             double epsilon, const OptionalTensor& shortcut,
                             bool relu) {
  auto [y, mean, invstd, reserve] = at::_batch_norm_with_update(
      x, weight, bias, kept_mean, kept_var, momentum, epsilon);
  // Of one value per channel the operator makes the unbiased variance 0/0.
  if (x.numel() == x.size(1)) kept_var.zero_();
  if (shortcut) y.add_(*shortcut);
  if (relu) y.relu_();
  return {y, mean, invstd};
}

at::Tensor inference_on_cpu(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& mean,
                            const at::Tensor& var, double epsilon,
                            const OptionalTensor& shortcut, bool relu) {
  at::Tensor y = std::get<0>(
      at::native_batch_norm(x, weight, bias, mean, var, false, 0.0, epsilon));
  if (shortcut) y.add_(*shortcut);
  if (relu) y.relu_();
  return y;
}

ThreeTensors gradients_on_cpu(const at::Tensor& dy, const at::Tensor& x,
                              const OptionalTensor& y, const at::Tensor& weight,
                              const at::Tensor&, const at::Tensor& mean,
                              const at::Tensor& invstd, double epsilon,
                              const OptionalTensor& more, bool relu) {
  const at::Tensor masked = relu ? at::threshold_backward(dy, *y, 0) : dy;
  auto [dx, dweight, dbias] =
      at::native_batch_norm_backward(masked, x, weight, {}, {}, mean, invstd,
                                     true, epsilon, {true, true, true});
  if (more) dx.add_(*more);
  return {dx, dweight, dbias};
}

std::tuple<at::Tensor, at::Tensor> max_pool_on_cpu(const at::Tensor& x) {
  return at::max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1});
}

at::Tensor max_pool_backward_on_cpu(const at::Tensor& dy, const at::Tensor& x,
                                    const at::Tensor& indices) {
  return at::max_pool2d_with_indices_backward(dy, x, {3, 3}, {2, 2}, {1, 1},
                                              {1, 1}, false, indices);
}

at::Tensor average_pool_on_cpu(const at::Tensor& x) {
  return at::avg_pool2d(x, {2, 2}, {2, 2});
}

at::Tensor average_pool_backward_on_cpu(const at::Tensor& dy,
                                        const at::Tensor& x) {
  return at::avg_pool2d_backward(dy, x, {2, 2}, {2, 2}, {0, 0}, false, true,
                                 c10::nullopt);
}

at::Tensor relu_backward_on_cpu(const at::Tensor& dy,
                                const OptionalTensor& more,
                                const at::Tensor& y) {
  return at::threshold_backward(more ? dy + *more : dy, y, 0);
}

// --- the dispatcher's

template <auto kOnCpu>
auto operator_of(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("chexnet::") + name).c_str(), "")
      .typed<std::remove_pointer_t<decltype(kOnCpu)>>();
}

}  // namespace

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
  static const auto op = operator_of<training_on_cpu>("batch_norm");
  return op.call(input.x, input.weight, input.bias, kept_mean, kept_var,
                 momentum, kEpsilon, shortcut, input.relu);
}

at::Tensor batch_norm_inference(const BatchNormInput& input,
                                const at::Tensor& mean, const at::Tensor& var,
                                const OptionalTensor& shortcut) {
  static const auto op = operator_of<inference_on_cpu>("batch_norm_inference");
  return op.call(input.x, input.weight, input.bias, mean, var, kEpsilon,
                 shortcut, input.relu);
}

ThreeTensors batch_norm_gradients(const at::Tensor& dy,
                                  const BatchNormInput& input,
                                  const OptionalTensor& y,
                                  const at::Tensor& mean,
                                  const at::Tensor& invstd,
                                  const OptionalTensor& more) {
  static const auto op = operator_of<gradients_on_cpu>("batch_norm_backward");
  return op.call(dy, input.x, y, input.weight, input.bias, mean, invstd,
                 kEpsilon, more, input.relu);
}

std::tuple<at::Tensor, at::Tensor> max_pool(const at::Tensor& x) {
  static const auto op = operator_of<max_pool_on_cpu>("max_pool");
  return op.call(x);
}

at::Tensor max_pool_gradient(const at::Tensor& dy, const at::Tensor& x,
                             const at::Tensor& chosen) {
  static const auto op =
      operator_of<max_pool_backward_on_cpu>("max_pool_backward");
  return op.call(dy, x, chosen);
}

at::Tensor average_pool(const at::Tensor& x) {
  static const auto op = operator_of<average_pool_on_cpu>("average_pool");
  return op.call(x);
}

at::Tensor average_pool_gradient(const at::Tensor& dy, const at::Tensor& x) {
  static const auto op =
      operator_of<average_pool_backward_on_cpu>("average_pool_backward");
  return op.call(dy, x);
}

at::Tensor relu_gradient(const at::Tensor& dy, const OptionalTensor& more,
                         const at::Tensor& y) {
  static const auto op = operator_of<relu_backward_on_cpu>("relu_backward");
  return op.call(dy, more, y);
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
      "batch_norm_backward(Tensor dy, Tensor x, Tensor? y, Tensor weight, "
      "Tensor bias, Tensor mean, Tensor invstd, float epsilon, Tensor? more, "
      "bool relu) -> (Tensor, Tensor, Tensor)");
  library.def("max_pool(Tensor x) -> (Tensor, Tensor)");
  library.def(
      "max_pool_backward(Tensor dy, Tensor x, Tensor chosen) -> Tensor");
  library.def("average_pool(Tensor x) -> Tensor");
  library.def("average_pool_backward(Tensor dy, Tensor x) -> Tensor");
  library.def("relu_backward(Tensor dy, Tensor? more, Tensor y) -> Tensor");
}

TORCH_LIBRARY_IMPL(chexnet, CPU, library) {
  library.impl("batch_norm", chexnet::training_on_cpu);
  library.impl("batch_norm_inference", chexnet::inference_on_cpu);
  library.impl("batch_norm_backward", chexnet::gradients_on_cpu);
  library.impl("max_pool", chexnet::max_pool_on_cpu);
  library.impl("max_pool_backward", chexnet::max_pool_backward_on_cpu);
  library.impl("average_pool", chexnet::average_pool_on_cpu);
  library.impl("average_pool_backward", chexnet::average_pool_backward_on_cpu);
  library.impl("relu_backward", chexnet::relu_backward_on_cpu);
}
