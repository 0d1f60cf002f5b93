#include "synchronized_batch_norm.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "operator_of.hpp"

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using TwoTensors = std::tuple<at::Tensor, at::Tensor>;
using FourTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

at::Tensor per_channel(const at::Tensor& t) { return t.view({1, -1, 1, 1}); }

// dy where ReLU(BatchNorm(x)) passes it.
at::Tensor cut_by_aten(const at::Tensor& dy, const at::Tensor& x,
                       const at::Tensor& weight, const at::Tensor& bias,
                       const at::Tensor& mean, const at::Tensor& invstd) {
  const at::Tensor y = (x - per_channel(mean)) * per_channel(weight * invstd) +
                       per_channel(bias);
  return at::threshold_backward(dy, y.to(dy.scalar_type()), 0);
}

at::Tensor moments_by_aten(const at::Tensor& x, const at::Tensor& kept_mean,
                           const at::Tensor& kept_var) {
  const int64_t pixels = x.numel() / x.size(1);
  // Momentum 0: the two stay as they are.
  const auto [mean, var] =
      at::batch_norm_update_stats(x, kept_mean, kept_var, 0);
  const auto wide = kept_mean.options().dtype(at::kDouble);
  return at::cat({mean.to(at::kDouble), var.to(at::kDouble),
                  at::full({1}, static_cast<double>(pixels), wide)});
}

FourTensors merge_by_aten(const at::Tensor& all, at::Tensor& kept_mean,
                          at::Tensor& kept_var, double share, double epsilon) {
  const auto type = kept_mean.scalar_type();
  const int64_t channels = kept_mean.numel();
  const at::Tensor means = all.narrow(1, 0, channels),
                   vars = all.narrow(1, channels, channels),
                   pixels = all.narrow(1, 2 * channels, 1);
  const at::Tensor count = pixels.sum(0);
  const at::Tensor mean = (means * pixels).sum(0) / count;
  const at::Tensor var =
      ((vars + (means - mean).square()) * pixels).sum(0) / count;
  kept_mean.add_(mean, share);
  kept_var.add_(var * (count / (count - 1).clamp_min(1)), share);
  return {mean.to(type), var.to(type), (var + epsilon).rsqrt().to(type),
          count.to(type)};
}

// The operator gives them as in inference, whose statistics are constants.
TwoTensors sums_by_aten(const at::Tensor& dy, const at::Tensor& x,
                        const at::Tensor& weight, const at::Tensor& bias,
                        const at::Tensor& mean, const at::Tensor& var,
                        const at::Tensor& invstd, double epsilon, bool relu) {
  const at::Tensor masked =
      relu ? cut_by_aten(dy, x, weight, bias, mean, invstd) : dy;
  const auto [none, dweight, dbias] =
      at::native_batch_norm_backward(masked, x, weight, mean, var, mean, invstd,
                                     false, epsilon, {false, true, true});
  return {dweight, dbias};
}

at::Tensor gradient_by_aten(const at::Tensor& dy, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const at::Tensor& mean, const at::Tensor& invstd,
                            const at::Tensor& dweight, const at::Tensor& dbias,
                            const OptionalTensor& pixels,
                            const OptionalTensor& more, bool relu) {
  const at::Tensor scale = weight * invstd;
  const at::Tensor masked =
      relu ? cut_by_aten(dy, x, weight, bias, mean, invstd) : dy;
  at::Tensor dx = masked * per_channel(scale);
  dx.sub_(per_channel(scale * (dbias / *pixels)));
  dx.addcmul_(x - per_channel(mean),
              per_channel(scale * invstd * (dweight / *pixels)), -1);
  dx = dx.to(dy.scalar_type());
  if (more) dx.add_(*more);
  return dx;
}

}  // namespace

at::Tensor batch_norm_moments(const at::Tensor& x, const at::Tensor& kept_mean,
                              const at::Tensor& kept_var, bool kernels) {
  if (!kernels) return moments_by_aten(x, kept_mean, kept_var);
  static const auto op = operator_of<moments_by_aten>("batch_norm_moments");
  return op.call(x, kept_mean, kept_var);
}

MergedMoments merge_moments(const at::Tensor& all, at::Tensor& kept_mean,
                            at::Tensor& kept_var, double share, bool kernels) {
  static const auto op = operator_of<merge_by_aten>("merge_moments");
  auto [mean, var, invstd, pixels] =
      kernels
          ? op.call(all, kept_mean, kept_var, share, kBatchNormEpsilon)
          : merge_by_aten(all, kept_mean, kept_var, share, kBatchNormEpsilon);
  return {mean, var, invstd, pixels};
}

TwoTensors batch_norm_sums(const at::Tensor& dy, const BatchNormInput& input,
                           const MergedMoments& moments, bool kernels) {
  const auto& [mean, var, invstd, pixels] = moments;
  if (!kernels)
    return sums_by_aten(dy, input.x, input.weight, input.bias, mean, var,
                        invstd, kBatchNormEpsilon, input.relu);
  static const auto op = operator_of<sums_by_aten>("batch_norm_sums");
  return op.call(dy, input.x, input.weight, input.bias, mean, var, invstd,
                 kBatchNormEpsilon, input.relu);
}

at::Tensor batch_norm_gradient(const at::Tensor& dy,
                               const BatchNormInput& input,
                               const MergedMoments& moments,
                               const at::Tensor& dweight,
                               const at::Tensor& dbias,
                               const OptionalTensor& more, bool kernels) {
  const auto& [mean, var, invstd, pixels] = moments;
  if (!kernels)
    return gradient_by_aten(dy, input.x, input.weight, input.bias, mean, invstd,
                            dweight, dbias, pixels, more, input.relu);
  static const auto op = operator_of<gradient_by_aten>("batch_norm_gradient");
  return op.call(dy, input.x, input.weight, input.bias, mean, invstd, dweight,
                 dbias, pixels, more, input.relu);
}

}  // namespace chexnet

TORCH_LIBRARY_FRAGMENT(chexnet, library) {
  library.def(
      "batch_norm_moments(Tensor x, Tensor kept_mean, Tensor kept_var) -> "
      "Tensor");
  library.def(
      "merge_moments(Tensor all, Tensor(a!) kept_mean, Tensor(b!) kept_var, "
      "float share, float epsilon) -> (Tensor, Tensor, Tensor, Tensor)");
  library.def(
      "batch_norm_sums(Tensor dy, Tensor x, Tensor weight, Tensor "
      "bias, Tensor mean, Tensor var, Tensor invstd, float epsilon, bool relu) "
      "-> (Tensor, Tensor)");
  library.def(
      "batch_norm_gradient(Tensor dy, Tensor x, Tensor weight, "
      "Tensor bias, Tensor mean, Tensor invstd, Tensor dweight, Tensor dbias, "
      "Tensor? pixels, Tensor? more, bool relu) -> Tensor");
}

TORCH_LIBRARY_IMPL(chexnet, CPU, library) {
  library.impl("batch_norm_moments", chexnet::moments_by_aten);
  library.impl("merge_moments", chexnet::merge_by_aten);
  library.impl("batch_norm_sums", chexnet::sums_by_aten);
  library.impl("batch_norm_gradient", chexnet::gradient_by_aten);
}
