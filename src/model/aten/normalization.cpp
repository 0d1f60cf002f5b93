#include "normalization.hpp"

#include <ATen/ATen.h>

namespace chexnet {
namespace {

at::Tensor per_channel(const std::vector<double>& values,
                       const NetworkOptions& options) {
  return at::tensor(values, at::kDouble)
      .to(options.device, master_type(options.precision))
      .view({1, 3, 1, 1});
}

}  // namespace

PixelNormalization::PixelNormalization(const NetworkOptions& options)
    : options_(options),
      mean_(per_channel(options.mean, options)),
      std_(per_channel(options.std, options)) {}

at::Tensor PixelNormalization::apply(const at::Tensor& images) const {
  const at::Tensor gray = images.to(mean_.scalar_type()).div_(255.0);
  return ((gray - mean_) / std_)
      .to(compute_type(options_.precision))
      .contiguous(activation_format(options_.precision));
}

}  // namespace chexnet
