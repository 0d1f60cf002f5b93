// 8-bit gray pixels to PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chexnet {

// pixels: [height, width].
std::vector<std::byte> encode_gray_png(const std::uint8_t* pixels, int width,
                                       int height);

}  // namespace chexnet
