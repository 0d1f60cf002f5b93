// What BatchNorm over the pixels of all ranks is made of, as operators of the
// dispatcher like those of own_operators.hpp: with `kernels` by our own, else
// by ATen's. Forward is moments, a gather of them, merge_moments(), and
// batch_norm_inference() by these; backward is sums, a gather, and the gradient
// by the sums of all. Per channel everything is [C] in the master type.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "own_operators.hpp"

namespace chexnet {

// Of this rank's x: mean, variance and number of pixels, [2C + 1] in double.
// `kept` tell the master type and stay as they are.
at::Tensor batch_norm_moments(const at::Tensor& x, const at::Tensor& kept_mean,
                              const at::Tensor& kept_var, bool kernels);

struct MergedMoments {
  at::Tensor mean, var, invstd;
  at::Tensor pixels;  // [1], how many these are of
};

// Of all ranks' moments, `all` [ranks, 2C + 1], in rank order and in double, as
// in comm/moments.hpp. kept += share * merged of mean and unbiased variance.
MergedMoments merge_moments(const at::Tensor& all, at::Tensor& kept_mean,
                            at::Tensor& kept_var, double share, bool kernels);

// dweight and dbias of this rank: sums of dy * z and dy, where ReLU passes dy
// and with z = (x - mean) * invstd.
std::tuple<at::Tensor, at::Tensor> batch_norm_sums(const at::Tensor& dy,
                                                   const BatchNormInput& input,
                                                   const MergedMoments& moments,
                                                   bool kernels);

// dx (+ more) by the sums of all ranks: with means over moments.pixels,
// dx = weight * invstd * (dy - mean(dy) - z * mean(dy * z)) (Ioffe and Szegedy,
// 2015).
at::Tensor batch_norm_gradient(const at::Tensor& dy,
                               const BatchNormInput& input,
                               const MergedMoments& moments,
                               const at::Tensor& dweight,
                               const at::Tensor& dbias,
                               const std::optional<at::Tensor>& more,
                               bool kernels);

}  // namespace chexnet
