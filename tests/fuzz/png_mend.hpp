// Chunks of PNG files.
#pragma once

#include "chexnet/image/inflate.hpp"
#include "target.hpp"

namespace chexnet::fuzz {

// Every chunk's CRC is made right.
inline void mend_png(std::vector<std::byte>& png) {
  for (size_t at = 8; at + 12 <= png.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i)
      length = length << 8 | std::to_integer<size_t>(png[at + i]);
    if (length > png.size() - at - 12) return;
    const uint32_t crc = crc32_of(std::span(png).subspan(at + 4, length + 4));
    for (size_t i = 0; i < 4; ++i)
      png[at + 8 + length + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
    at += length + 12;
  }
}

}  // namespace chexnet::fuzz
