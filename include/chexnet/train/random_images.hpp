// Images for benches: noise, which no shortcut makes cheaper.
#pragma once

#include <ATen/ATen.h>

#include "chexnet/core/philox.hpp"

namespace chexnet {

// uint8 [batch,1,size,size].
inline at::Tensor random_images(int64_t batch, int64_t size, Random& random) {
  at::Tensor images = at::empty({batch, 1, size, size}, at::kByte);
  auto* pixels = images.data_ptr<uint8_t>();
  for (int64_t i = 0; i < images.numel(); ++i)
    pixels[i] = static_cast<uint8_t>(random.below(256));
  return images;
}

}  // namespace chexnet
