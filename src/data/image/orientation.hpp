// How a camera or scanner was held: EXIF 2.3, tag 0x0112, of a JPEG's APP1
// block or a PNG's eXIf chunk.
#pragma once

#include <cstddef>
#include <span>

#include "chexnet/data/image/gray_image.hpp"

namespace chexnet {

// 1 to 8, of EXIF's block from its byte order on; 1 where it has none or is
// damaged.
int orientation_of(std::span<const std::byte> tiff);

// Turns the stored picture upright.
void turn_upright(int orientation, GrayImage& image);

}  // namespace chexnet
