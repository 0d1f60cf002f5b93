// Images as ATen's layers take them.
#pragma once

#include <ATen/core/Tensor.h>

#include "chexnet/model/network_options.hpp"

namespace chexnet {

class PixelNormalization {
 public:
  explicit PixelNormalization(const NetworkOptions& options);
  // uint8 [N,1,H,W], on the network's device, to [N,3,H,W] in the compute type:
  // the gray picture three times, each with the mean and deviation of its
  // channel.
  at::Tensor apply(const at::Tensor& images) const;

 private:
  const NetworkOptions& options_;
  at::Tensor mean_, std_;  // [1,3,1,1]
};

}  // namespace chexnet
