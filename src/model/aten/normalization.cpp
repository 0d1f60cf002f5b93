#include "normalization.hpp"

#include <ATen/ATen.h>

#include <cassert>

namespace chexnet {

PixelNormalization::PixelNormalization(const NetworkOptions& options)
    : format_(activation_format(options.precision)) {
  const auto master = at::dtype(master_type(options.precision));
  const at::Tensor gray = at::arange(256, master).div_(255.0).unsqueeze(1);
  const at::Tensor mean = at::tensor(options.mean, at::kDouble).to(master),
                   std = at::tensor(options.std, at::kDouble).to(master);
  values_ =
      ((gray - mean) / std).to(options.device, compute_type(options.precision));
}

at::Tensor PixelNormalization::apply(const at::Tensor& images) const {
  assert(images.scalar_type() == at::kByte && images.size(1) == 1);
  const at::Tensor gray = images.to(at::kInt).reshape({-1});
  return values_.index_select(0, gray)
      .view({images.size(0), images.size(2), images.size(3), 3})
      .permute({0, 3, 1, 2})
      .contiguous(format_);
}

}  // namespace chexnet
