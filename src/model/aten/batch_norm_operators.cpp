#include "batch_norm_operators.hpp"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/library.h>

#include <cassert>

#include "own_operators.hpp"

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using TwoTensors = std::tuple<at::Tensor, at::Tensor>;

at::Tensor per_channel(const at::Tensor& t) { return t.view({1, -1, 1, 1}); }

at::Tensor first(const at::Tensor& of_channels, const at::Tensor& x) {
  return of_channels.narrow(0, 0, x.size(1));
}

// How many x has, [1].
at::Tensor pixels_of(const at::Tensor& x, at::TensorOptions options) {
  return at::full({1}, x.numel() / x.size(1), options);
}

at::Tensor packed(const at::Tensor& x) {
  return x.contiguous(x.suggest_memory_format());
}

void statistics_by_aten(const at::Tensor& x, const OptionalTensor& copy,
                        at::Tensor& mean, at::Tensor& var) {
  // The two tell the type; with momentum 0 they stay as they are.
  const auto [new_mean, new_var] = at::batch_norm_update_stats(x, mean, var, 0);
  mean.copy_(new_mean);
  var.copy_(new_var);
  if (copy) copy->copy_(x);
}

at::Tensor moments_by_aten(const at::Tensor& x, const OptionalTensor& copy) {
  const auto master = x.options().dtype(at::toOpMathType(x.scalar_type()));
  at::Tensor mean = at::zeros({x.size(1)}, master), var = at::zeros_like(mean);
  statistics_by_aten(x, copy, mean, var);
  return at::cat({mean.to(at::kDouble), var.to(at::kDouble),
                  pixels_of(x, master.dtype(at::kDouble))});
}

void merge_by_aten(const at::Tensor& all, at::Tensor& mean, at::Tensor& var,
                   at::Tensor& pixels) {
  const int64_t channels = mean.numel();
  const at::Tensor means = all.narrow(1, 0, channels),
                   vars = all.narrow(1, channels, channels),
                   counts = all.narrow(1, 2 * channels, 1);
  const at::Tensor count = counts.sum(0);
  const at::Tensor center = (means * counts).sum(0) / count;
  mean.copy_(center);
  var.copy_(((vars + (means - center).square()) * counts).sum(0) / count);
  pixels.copy_(count);
}

at::Tensor normalized(const at::Tensor& x, const at::Tensor& weight,
                      const at::Tensor& bias, const at::Tensor& mean,
                      const at::Tensor& var, double epsilon) {
  return std::get<0>(at::native_batch_norm(packed(x), weight, bias,
                                           first(mean, x), first(var, x), false,
                                           0.0, epsilon));
}

at::Tensor apply_by_aten(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias, const at::Tensor& mean,
                         const at::Tensor& var, const OptionalTensor& pixels,
                         double epsilon, bool relu,
                         const OptionalTensor& shortcut,
                         const OptionalTensor& kept_mean,
                         const OptionalTensor& kept_var, double share) {
  if (kept_mean) {
    const at::Tensor count = pixels ? *pixels : pixels_of(x, var.options());
    kept_mean->add_(first(mean, x), share);
    kept_var->add_(first(var, x) * (count / (count - 1).clamp_min(1)), share);
  }
  at::Tensor y = normalized(x, weight, bias, mean, var, epsilon);
  add_and_cut(y, shortcut, relu);
  return y;
}

// Columns or rows of x of the first pixels of windows of 3x3.
at::Tensor firsts(const at::Tensor& argmax, int dimension) {
  return at::arange(argmax.size(dimension), argmax.options().dtype(at::kLong))
      .mul(2)
      .sub(1);
}
at::Tensor first_rows(const at::Tensor& argmax) {
  return firsts(argmax, 2).view({-1, 1});
}

// Of pixels of x's plane, which is `width` wide.
at::Tensor argmax_of(const at::Tensor& indices, int64_t width) {
  const at::Tensor down =
      at::floor_divide(indices, width) - first_rows(indices);
  const at::Tensor right = at::remainder(indices, width) - firsts(indices, 3);
  return (down * 3 + right).to(at::kByte);
}
at::Tensor indices_of(const at::Tensor& argmax, int64_t width) {
  const at::Tensor pixel = argmax.to(at::kLong);
  return (first_rows(argmax) + at::floor_divide(pixel, 3)) * width +
         firsts(argmax, 3) + at::remainder(pixel, 3);
}

TwoTensors max_pool_by_aten(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& mean,
                            const at::Tensor& var, const OptionalTensor& pixels,
                            double epsilon, const OptionalTensor& kept_mean,
                            const OptionalTensor& kept_var, double share) {
  const auto [y, indices] =
      max_pool(apply_by_aten(x, weight, bias, mean, var, pixels, epsilon, true,
                             {}, kept_mean, kept_var, share));
  return {y, argmax_of(indices, x.size(3)).masked_fill_(y <= 0, kNoArgmax)};
}

at::Tensor average_pool_by_aten(const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& bias, const at::Tensor& mean,
                                const at::Tensor& var,
                                const OptionalTensor& pixels, double epsilon,
                                const OptionalTensor& kept_mean,
                                const OptionalTensor& kept_var, double share) {
  return average_pool(apply_by_aten(x, weight, bias, mean, var, pixels, epsilon,
                                    true, {}, kept_mean, kept_var, share));
}

// The gradient by ReLU's result, from that of pooled maps.
at::Tensor unpooled(const at::Tensor& dy, const OptionalTensor& argmax,
                    const at::Tensor& x) {
  const auto format = x.suggest_memory_format();
  if (!argmax)
    return dy.sizes() == x.sizes()
               ? dy
               : average_pool_gradient(dy, x.sizes(), format);
  const at::Tensor none = *argmax == kNoArgmax;
  // A window's fifth pixel is in every map.
  return max_pool_gradient(dy.masked_fill(none, 0), x.sizes(), format,
                           indices_of(argmax->masked_fill(none, 4), x.size(3)));
}

at::Tensor masked(const at::Tensor& dy, const OptionalTensor& argmax,
                  const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias, const at::Tensor& mean,
                  const at::Tensor& var, double epsilon, bool relu) {
  at::Tensor whole = unpooled(dy, argmax, x);
  if (!relu || argmax) return whole;
  return at::threshold_backward(
      whole, normalized(x, weight, bias, mean, var, epsilon), 0);
}

// The operator gives them as in inference, whose statistics are constants.
TwoTensors sums_by_aten(const at::Tensor& dy, const OptionalTensor& argmax,
                        const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias, const at::Tensor& mean,
                        const at::Tensor& var, double epsilon, bool relu) {
  const auto [none, dweight, dbias] = at::native_batch_norm_backward(
      masked(dy, argmax, x, weight, bias, mean, var, epsilon, relu), packed(x),
      weight, first(mean, x), first(var, x), {}, {}, false, epsilon,
      {false, true, true});
  return {dweight, dbias};
}

at::Tensor gradient_by_aten(const at::Tensor& dy, const OptionalTensor& argmax,
                            const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& mean,
                            const at::Tensor& var, const OptionalTensor& pixels,
                            double epsilon, bool relu,
                            const at::Tensor& dweight,
                            const at::Tensor& dbias) {
  const at::Tensor cut =
      masked(dy, argmax, x, weight, bias, mean, var, epsilon, relu);
  const at::Tensor center = first(mean, x),
                   invstd = (first(var, x) + epsilon).rsqrt();
  if (!pixels)
    return std::get<0>(at::native_batch_norm_backward(
        cut, packed(x), weight, {}, {}, center, invstd, true, epsilon,
        {true, false, false}));
  const at::Tensor scale = weight * invstd;
  at::Tensor dx = cut * per_channel(scale);
  dx.sub_(per_channel(scale * (dbias / *pixels)));
  dx.addcmul_(x - per_channel(center),
              per_channel(scale * invstd * (dweight / *pixels)), -1);
  return dx.to(x.scalar_type());
}

TwoTensors add_up_by_aten(const at::Tensor& dy, const at::Tensor& x,
                          const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& mean, const at::Tensor& var,
                          double epsilon, bool relu, at::Tensor& dx, bool adds,
                          at::Tensor& offset, at::Tensor& slope) {
  const at::Tensor cut =
      masked(dy, {}, x, weight, bias, mean, var, epsilon, relu);
  const auto [dweight, dbias] =
      sums_by_aten(cut, {}, x, weight, bias, mean, var, epsilon, false);
  const at::Tensor invstd = (first(var, x) + epsilon).rsqrt();
  const at::Tensor scale = weight * invstd;
  const at::Tensor own = cut * per_channel(scale);
  if (adds)
    dx.add_(own);
  else
    dx.copy_(own);
  offset.addcmul_(scale, dbias);
  slope.addcmul_(scale * invstd, dweight);
  return {dweight, dbias};
}

at::Tensor corrected_by_aten(const at::Tensor& sum, const at::Tensor& x,
                             const at::Tensor& mean,
                             const OptionalTensor& pixels,
                             const at::Tensor& offset,
                             const at::Tensor& slope) {
  const at::Tensor count = pixels ? *pixels : pixels_of(x, mean.options());
  at::Tensor dx = sum - per_channel(offset / count);
  dx.addcmul_(x - per_channel(mean), per_channel(slope / count), -1);
  return packed(dx.to(x.scalar_type()));
}

// KeptStatistics as operators take them.
struct Kept {
  explicit Kept(const std::optional<KeptStatistics>& kept) {
    if (!kept) return;
    mean = kept->mean;
    var = kept->var;
    share = kept->share;
  }
  OptionalTensor mean, var;
  double share = 0;
};

}  // namespace

void batch_norm_statistics(const at::Tensor& x, const OptionalTensor& copy,
                           MapStatistics to) {
  compute<statistics_by_aten>("batch_norm_statistics", true, x, copy, to.mean,
                              to.var);
}

at::Tensor batch_norm_moments(const at::Tensor& x, const OptionalTensor& copy,
                              bool kernels) {
  return compute<moments_by_aten>("batch_norm_moments", kernels, x, copy);
}

void merge_moments(const at::Tensor& all, MapStatistics to, bool kernels) {
  compute<merge_by_aten>("merge_moments", kernels, all, to.mean, to.var,
                         *to.pixels);
}

at::Tensor batch_norm_apply(const BatchNormInput& input,
                            const OptionalTensor& shortcut,
                            const std::optional<KeptStatistics>& kept,
                            bool kernels) {
  const auto& [x, weight, bias, statistics, relu] = input;
  const auto& [mean, var, pixels] = statistics;
  const Kept to(kept);
  return compute<apply_by_aten>("batch_norm_apply", kernels, x, weight, bias,
                                mean, var, pixels, kBatchNormEpsilon, relu,
                                shortcut, to.mean, to.var, to.share);
}

TwoTensors batch_norm_max_pool(const BatchNormInput& input,
                               const std::optional<KeptStatistics>& kept) {
  const auto& [x, weight, bias, statistics, relu] = input;
  const auto& [mean, var, pixels] = statistics;
  assert(relu);
  const Kept to(kept);
  return compute<max_pool_by_aten>("batch_norm_max_pool", true, x, weight, bias,
                                   mean, var, pixels, kBatchNormEpsilon,
                                   to.mean, to.var, to.share);
}

at::Tensor batch_norm_average_pool(const BatchNormInput& input,
                                   const std::optional<KeptStatistics>& kept) {
  const auto& [x, weight, bias, statistics, relu] = input;
  const auto& [mean, var, pixels] = statistics;
  assert(relu);
  const Kept to(kept);
  return compute<average_pool_by_aten>(
      "batch_norm_average_pool", true, x, weight, bias, mean, var, pixels,
      kBatchNormEpsilon, to.mean, to.var, to.share);
}

ChannelSums batch_norm_sums(const at::Tensor& dy, const OptionalTensor& argmax,
                            const BatchNormInput& input, bool kernels) {
  const auto& [x, weight, bias, statistics, relu] = input;
  const auto& [mean, var, pixels] = statistics;
  auto [dweight, dbias] =
      compute<sums_by_aten>("batch_norm_sums", kernels, dy, argmax, x, weight,
                            bias, mean, var, kBatchNormEpsilon, relu);
  return {dweight, dbias};
}

at::Tensor batch_norm_gradient(const at::Tensor& dy,
                               const OptionalTensor& argmax,
                               const BatchNormInput& input,
                               const ChannelSums& sums, bool kernels) {
  const auto& [x, weight, bias, statistics, relu] = input;
  const auto& [mean, var, pixels] = statistics;
  return compute<gradient_by_aten>(
      "batch_norm_gradient", kernels, dy, argmax, x, weight, bias, mean, var,
      pixels, kBatchNormEpsilon, relu, sums.dweight, sums.dbias);
}

ChannelSums batch_norm_add_up(const at::Tensor& dy, const BatchNormInput& input,
                              ReadersGradient& to) {
  const auto& [x, weight, bias, statistics, relu] = input;
  const auto& [mean, var, pixels] = statistics;
  const bool adds = to.map.defined();
  if (!adds)
    to.map = at::empty(
        x.sizes(), x.options().memory_format(at::MemoryFormat::ChannelsLast));
  auto [dweight, dbias] = compute<add_up_by_aten>(
      "batch_norm_add_up", true, dy, x, weight, bias, mean, var,
      kBatchNormEpsilon, relu, to.map, adds, to.offset, to.slope);
  return {dweight, dbias};
}

at::Tensor batch_norm_corrected(const ReadersGradient& sum, const at::Tensor& x,
                                const MapStatistics& statistics) {
  return compute<corrected_by_aten>("batch_norm_corrected", true, sum.map, x,
                                    statistics.mean, statistics.pixels,
                                    sum.offset, sum.slope);
}

}  // namespace chexnet

TORCH_LIBRARY_FRAGMENT(chexnet, library) {
  library.def(
      "batch_norm_statistics(Tensor x, Tensor(a!)? copy, Tensor(b!) mean, "
      "Tensor(c!) var) -> ()");
  library.def("batch_norm_moments(Tensor x, Tensor(a!)? copy) -> Tensor");
  library.def(
      "merge_moments(Tensor all, Tensor(a!) mean, Tensor(b!) var, Tensor(c!) "
      "pixels) -> ()");
  library.def(
      "batch_norm_apply(Tensor x, Tensor weight, Tensor bias, Tensor mean, "
      "Tensor var, Tensor? pixels, float epsilon, bool relu, Tensor? shortcut, "
      "Tensor(a!)? kept_mean, Tensor(b!)? kept_var, float share) -> Tensor");
  library.def(
      "batch_norm_max_pool(Tensor x, Tensor weight, Tensor bias, Tensor mean, "
      "Tensor var, Tensor? pixels, float epsilon, Tensor(a!)? kept_mean, "
      "Tensor(b!)? kept_var, float share) -> (Tensor, Tensor)");
  library.def(
      "batch_norm_average_pool(Tensor x, Tensor weight, Tensor bias, Tensor "
      "mean, Tensor var, Tensor? pixels, float epsilon, Tensor(a!)? kept_mean, "
      "Tensor(b!)? kept_var, float share) -> Tensor");
  library.def(
      "batch_norm_sums(Tensor dy, Tensor? argmax, Tensor x, Tensor weight, "
      "Tensor bias, Tensor mean, Tensor var, float epsilon, bool relu) -> "
      "(Tensor, Tensor)");
  library.def(
      "batch_norm_gradient(Tensor dy, Tensor? argmax, Tensor x, Tensor weight, "
      "Tensor bias, Tensor mean, Tensor var, Tensor? pixels, float epsilon, "
      "bool relu, Tensor dweight, Tensor dbias) -> Tensor");
  library.def(
      "batch_norm_add_up(Tensor dy, Tensor x, Tensor weight, Tensor bias, "
      "Tensor mean, Tensor var, float epsilon, bool relu, Tensor(a!) dx, bool "
      "adds, Tensor(b!) offset, Tensor(c!) slope) -> (Tensor, Tensor)");
  library.def(
      "batch_norm_corrected(Tensor sum, Tensor x, Tensor mean, Tensor? pixels, "
      "Tensor offset, Tensor slope) -> Tensor");
}

TORCH_LIBRARY_IMPL(chexnet, CPU, library) {
  library.impl("batch_norm_statistics", chexnet::statistics_by_aten);
  library.impl("batch_norm_moments", chexnet::moments_by_aten);
  library.impl("merge_moments", chexnet::merge_by_aten);
  library.impl("batch_norm_apply", chexnet::apply_by_aten);
  library.impl("batch_norm_max_pool", chexnet::max_pool_by_aten);
  library.impl("batch_norm_average_pool", chexnet::average_pool_by_aten);
  library.impl("batch_norm_sums", chexnet::sums_by_aten);
  library.impl("batch_norm_gradient", chexnet::gradient_by_aten);
  library.impl("batch_norm_add_up", chexnet::add_up_by_aten);
  library.impl("batch_norm_corrected", chexnet::corrected_by_aten);
}
