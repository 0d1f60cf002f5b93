// File bytes to 8-bit gray pixels. The format is decided by magic bytes, never by the name; width x
// height is checked on the header before memory is taken. Colour becomes gray by ITU-R 601-2 luma
// as in Pillow's convert("L"); alpha is dropped; 16-bit samples are divided by 257; the EXIF
// orientation of a JPEG is applied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "chexnet/image/gray_image.hpp"
#include "chexnet/image/resize.hpp"

namespace chexnet {

struct DecodeLimits {
  std::int64_t max_pixels = 64'000'000;
  // A JPEG may come at 1/2, 1/4 or 1/8 of its size (scaled in its DCT) as long as neither side gets
  // smaller than this, pixels; 0 = always at full size.
  int min_side = 0;
};

// DataError naming `origin` for anything that is not a whole PNG or JPEG within the limits.
// Thread-safe.
void decode_image(std::span<const std::byte> bytes, const DecodeLimits& limits,
                  const std::string& origin, GrayImage& into);

// decode_image() and then resize() of the whole picture to `into` [size, size], in one pass over
// the pixels where the format allows it: they stay in the processor's cache. `limits.min_side` is
// set here.
void decode_resized(std::span<const std::byte> bytes, DecodeLimits limits,
                    const std::string& origin, int size, ResizeKind kind, GrayImage& scratch,
                    std::uint8_t* into);

}  // namespace chexnet
