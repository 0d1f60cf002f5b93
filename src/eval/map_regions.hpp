// Connected regions of a square of values.
#pragma once

#include <span>
#include <vector>

namespace chexnet {

// Pixels [left, right) x [top, bottom).
struct PixelBox {
  int left = 0, top = 0, right = 0, bottom = 0;
  bool operator==(const PixelBox&) const = default;
};

// A box around each region of pixels of at least `cut`; neighbors are the eight
// around a pixel. In the order of their first pixels.
std::vector<PixelBox> regions_above(std::span<const float> values, int side,
                                    float cut);

}  // namespace chexnet
