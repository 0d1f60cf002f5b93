// Images as ATen's layers take them.
#pragma once

#include <ATen/core/Tensor.h>

#include "chexnet/model/network_options.hpp"

namespace chexnet {

// A gray value is one of 256, so all results are computed beforehand, on the
// CPU: the same for every device.
class PixelNormalization {
 public:
  explicit PixelNormalization(const NetworkOptions& options);
  // uint8 [N,1,H,W], on the network's device, to [N,3,H,W] in the compute type:
  // the gray picture three times, each with the mean and deviation of its
  // channel.
  at::Tensor apply(const at::Tensor& images) const;

 private:
  at::MemoryFormat format_;
  at::Tensor values_;  // [gray value,3], in the compute type, on the device
};

}  // namespace chexnet
