// The passes that BatchNorm is made of, as operators of the dispatcher like
// those of own_operators.hpp: with `kernels` by our own, else by ATen's.
//
//   forward    statistics   x -> mean, variance
//              apply        x -> y
//   backward   sums         dy, x -> dweight, dbias
//              gradient     dy, x -> dx, by these sums
//
// Where ReLU and pooling follow, max_pool or average_pool replaces apply: y is
// the pooled map, and dy its gradient. No larger one is made.
//
// The gradient of a map that several BatchNorms read, of which our kernels
// read dy and x of each once:
//
//              add_up       dy, x -> dweight, dbias, and a sum of all readers
//              corrected    the sum, x -> dx
//
// Over the pixels of all ranks it is the same with two gathers in between: of
// moments, which merge_moments() makes statistics of, and of sums. x, and sums
// of gradients, [N,C,H,W] may be some channels of a wider channels-last map,
// other maps are dense. What is per channel is [C] in the master type.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace chexnet {

constexpr double kBatchNormEpsilon = 1e-5;  // torchvision's

// `pixels` [1]: how many they are of, where it is not one map's own.
struct MapStatistics {
  at::Tensor mean, var;
  std::optional<at::Tensor> pixels = {};
};

// Statistics of a wider map will do: the first are of x.
struct BatchNormInput {
  at::Tensor x, weight, bias;
  MapStatistics statistics;
  bool relu = false;
};

// Updates the running statistics: kept += share * new of mean and unbiased
// variance.
struct KeptStatistics {
  at::Tensor mean, var;
  double share;
};

struct ChannelSums {
  at::Tensor dweight, dbias;
};

// Of x to `to`; x also to `copy`, of its shape.
void batch_norm_statistics(const at::Tensor& x,
                           const std::optional<at::Tensor>& copy,
                           MapStatistics to);

// Of this rank's x: mean, variance and number of pixels, [2C + 1] in double.
at::Tensor batch_norm_moments(const at::Tensor& x,
                              const std::optional<at::Tensor>& copy,
                              bool kernels);

// Of all ranks' moments, `all` [ranks, 2C + 1], in rank order and in double, as
// in comm/moments.hpp.
void merge_moments(const at::Tensor& all, MapStatistics to, bool kernels);

// BatchNorm(x) (+ shortcut), then ReLU.
at::Tensor batch_norm_apply(const BatchNormInput& input,
                            const std::optional<at::Tensor>& shortcut,
                            const std::optional<KeptStatistics>& kept,
                            bool kernels);

// ReLU(BatchNorm(x)), pooled as own_operators.hpp says, by our kernels. With
// the maximum which of its window's nine pixels it is, a byte each, row by row;
// kNoArgmax where ReLU cut all.
constexpr int64_t kNoArgmax = 9;
std::tuple<at::Tensor, at::Tensor> batch_norm_max_pool(
    const BatchNormInput& input, const std::optional<KeptStatistics>& kept);
at::Tensor batch_norm_average_pool(const BatchNormInput& input,
                                   const std::optional<KeptStatistics>& kept);

// `argmax`, here and below: of batch_norm_max_pool, where dy is its gradient.
//
// Of this rank's dy * z and dy, where ReLU passes dy and with z = (x - mean) /
// sqrt(var + epsilon).
ChannelSums batch_norm_sums(const at::Tensor& dy,
                            const std::optional<at::Tensor>& argmax,
                            const BatchNormInput& input, bool kernels);

// With means over statistics.pixels, dx = scale * (dy - mean(dy) - z * mean(dy
// * z)) and scale = weight / sqrt(var + epsilon) (Ioffe and Szegedy, 2015).
at::Tensor batch_norm_gradient(const at::Tensor& dy,
                               const std::optional<at::Tensor>& argmax,
                               const BatchNormInput& input,
                               const ChannelSums& sums, bool kernels);

// The same of x's readers r, of which each knows its own dy alone:
//
//   dx = sum_r scale_r * dy_r - (offset + slope * (x - mean)) / pixels
//   offset = sum_r scale_r * dbias_r
//   slope = sum_r scale_r * dweight_r / sqrt(var + epsilon)
//
// The first is summed in `map`, which the first reader makes. Offset and slope
// are 0 at first.
struct ReadersGradient {
  at::Tensor map, offset, slope;
};

// Adds a reader's part; gives batch_norm_sums(). dy is by batch_norm_apply() or
// by batch_norm_average_pool(), as its shape says.
ChannelSums batch_norm_add_up(const at::Tensor& dy, const BatchNormInput& input,
                              ReadersGradient& to);

// dx, dense, when all readers have added theirs; with offset and slope of all
// ranks.
at::Tensor batch_norm_corrected(const ReadersGradient& sum, const at::Tensor& x,
                                const MapStatistics& statistics);

}  // namespace chexnet
