// 8-bit pixels to PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chexnet {

// pixels: [height, width].
std::vector<std::byte> encode_gray_png(const uint8_t* pixels, int width,
                                       int height);
// pixels: [height, width, 3], red first.
std::vector<std::byte> encode_rgb_png(const uint8_t* pixels, int width,
                                      int height);

}  // namespace chexnet
