// File bytes to 8-bit gray pixels. The format is decided by magic bytes, never by the name; width x
// height is checked on the header before memory is taken. Colour becomes gray by ITU-R 601-2 luma
// as in Pillow's convert("L"); alpha is dropped; 16-bit samples are divided by 257; the EXIF
// orientation of a JPEG is applied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace chexnet {

struct GrayImage {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width]; capacity is reused
};

// DataError naming `origin` for anything that is not a whole PNG or JPEG of at most `max_pixels`.
// Thread-safe.
void decode_image(std::span<const std::byte> bytes, std::int64_t max_pixels,
                  const std::string& origin, GrayImage& into);

}  // namespace chexnet
