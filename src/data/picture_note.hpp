// Why a picture is unlikely a chest X-ray, in words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "chexnet/data/image_source.hpp"

namespace chexnet {

// From the darkest to the brightest of all pixels that were added.
struct GrayRange {
  uint8_t low = 255, high = 0;

  void add(std::span<const uint8_t> pixels) {
    const auto [least, most] = std::ranges::minmax(pixels);
    low = std::min(low, least);
    high = std::max(high, most);
  }
  // The noise of a detector alone spans more than four of 256 levels.
  bool one_gray() const { return high - low < 4; }
};

// Of a picture that was decoded to `input`, [side, side]. "": nothing is odd;
// else "of one gray", "in color", "a strip of 2000 x 20 pixels", "20 x 20
// pixels, enlarged more than twice", joined by "; ". Of a pack's pixels only
// the gray is known.
std::string picture_note(const FetchedImage& fetched,
                         std::span<const uint8_t> input, int side);

}  // namespace chexnet
