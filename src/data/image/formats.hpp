// The formats decode_image() knows: png.cpp and jpeg.cpp. One header for both,
// as nobody but decode.cpp and picture_facts.cpp calls them, and each has a few
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/image/picture_facts.hpp"

namespace chexnet {

void decode_png(std::span<const std::byte> bytes, const DecodeLimits& limits,
                const std::string& origin, GrayImage& into);
// Both dimensions change and it is of the common kind: shrunk with antialias
// while it is decoded. False when it is not; then `into` is untouched.
bool decode_png_resized(std::span<const std::byte> bytes,
                        const DecodeLimits& limits, const std::string& origin,
                        int size, uint8_t* into);
void decode_jpeg(std::span<const std::byte> bytes, const DecodeLimits& limits,
                 const std::string& origin, GrayImage& into);

// As picture_facts(). A JPEG that cannot be decoded again has no color.
PictureFacts facts_of_png(std::span<const std::byte> bytes,
                          const std::string& origin);
PictureFacts facts_of_jpeg(std::span<const std::byte> bytes);
// Of pixels of four bytes, of which the first three are colors.
bool shows_color(std::span<const uint8_t> pixels);

[[noreturn]] void decode_failed(const std::string& origin,
                                const std::string& what,
                                const std::string& hint);
// The size a header claims.
void check_size(int64_t width, int64_t height, const DecodeLimits& limits,
                const std::string& origin);

// Pillow's L = (19595 R + 38470 G + 7471 B + 2^15) >> 16.
inline uint8_t luma(unsigned r, unsigned g, unsigned b) {
  return static_cast<uint8_t>((19595 * r + 38470 * g + 7471 * b + 0x8000) >>
                              16);
}

}  // namespace chexnet
