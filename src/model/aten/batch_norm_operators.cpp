#include "batch_norm_operators.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

constexpr double kEpsilon = 1e-5;  // torchvision's
constexpr int64_t kVectorBytes = 16;

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
  at::Tensor y = std::get<0>(at::native_batch_norm(x, weight, bias, mean, var,
                                                   false, 0.0, epsilon));
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
  auto [dx, dweight, dbias] = at::native_batch_norm_backward(
      masked, x, weight, {}, {}, mean, invstd, true, epsilon,
      {true, true, true});
  if (more) dx.add_(*more);
  return {dx, dweight, dbias};
}

}  // namespace

bool batch_norm_kernels_take(const at::Tensor& x) {
  const auto type = x.scalar_type();
  return !x.is_cpu() &&
         (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         x.size(1) * static_cast<int64_t>(x.element_size()) % kVectorBytes == 0;
}

ThreeTensors batch_norm_training(const BatchNormInput& input,
                                 at::Tensor& kept_mean, at::Tensor& kept_var,
                                 double momentum,
                                 const OptionalTensor& shortcut) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("chexnet::batch_norm", "")
                             .typed<decltype(training_on_cpu)>();
  return op.call(input.x, input.weight, input.bias, kept_mean, kept_var,
                 momentum, kEpsilon, shortcut, input.relu);
}

at::Tensor batch_norm_inference(const BatchNormInput& input,
                                const at::Tensor& mean, const at::Tensor& var,
                                const OptionalTensor& shortcut) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("chexnet::batch_norm_inference", "")
          .typed<decltype(inference_on_cpu)>();
  return op.call(input.x, input.weight, input.bias, mean, var, kEpsilon,
                 shortcut, input.relu);
}

ThreeTensors batch_norm_gradients(const at::Tensor& dy,
                                  const BatchNormInput& input,
                                  const OptionalTensor& y,
                                  const at::Tensor& mean,
                                  const at::Tensor& invstd,
                                  const OptionalTensor& more) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("chexnet::batch_norm_backward", "")
          .typed<decltype(gradients_on_cpu)>();
  return op.call(dy, input.x, y, input.weight, input.bias, mean, invstd,
                 kEpsilon, more, input.relu);
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
}

TORCH_LIBRARY_IMPL(chexnet, CPU, library) {
  library.impl("batch_norm", chexnet::training_on_cpu);
  library.impl("batch_norm_inference", chexnet::inference_on_cpu);
  library.impl("batch_norm_backward", chexnet::gradients_on_cpu);
}
