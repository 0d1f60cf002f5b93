// Shrinks and enlarges 8-bit gray images. Which definition a network was
// trained with is part of its checkpoint. ResizeKind::kAntialias: bilinear with
// antialias on uint8, equal bit for bit to torchvision's (PyTorch's
// _upsample_bilinear2d_aa for uint8): weights as int16 fixed point, horizontal
// pass first, rounded to uint8 between the passes. kArea: the exact mean over
// the box an output pixel covers, halves up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/config/choices.hpp"
#include "chexnet/data/image/gray_image.hpp"

namespace chexnet {

// A rectangle of the source, in pixels.
struct Region {
  int x = 0, y = 0, width = 0, height = 0;
};

// Resamples `region` of `source` to `size` x `size` in `into` [size, size].
// Thread-safe.
void resize(const GrayImage& source, Region region, int size, ResizeKind kind,
            uint8_t* into);

}  // namespace chexnet
