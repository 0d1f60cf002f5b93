// Cuts a rectangle out of gray pixels, as it is or from right to left.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace chexnet {

// Where the center crop of a square begins, pixels from the left and the top:
// torchvision's int(round((size - crop) / 2)), which rounds a half to the even
// number. crop <= size.
constexpr int center_crop_begin(int size, int crop) {
  assert(crop <= size);
  const int slack = size - crop;
  const bool up = slack % 4 == 3;  // k + 1/2 with k odd
  return slack / 2 + (up ? 1 : 0);
}

// into [height, width] = the rectangle whose rows begin at `from`, `stride`
// bytes apart.
void copy_crop(const uint8_t* from, size_t stride, size_t width, size_t height,
               uint8_t* into);
// The same mirrored left-right. std::reverse_copy moves one byte at a time,
// which would cost more than everything else about a packed image.
void copy_crop_flipped(const uint8_t* from, size_t stride, size_t width,
                       size_t height, uint8_t* into);

}  // namespace chexnet
