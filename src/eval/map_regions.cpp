#include "map_regions.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace chexnet {

// Regions are joined over edges and corners (eight neighbors). A flood fill
// with an explicit stack: a recursion could be as deep as the map has pixels.
std::vector<PixelBox> regions_above(std::span<const float> values, int side,
                                    float cut) {
  assert(values.size() ==
         static_cast<size_t>(side) * static_cast<size_t>(side));
  std::vector<bool> open;
  for (const float v : values) open.push_back(v >= cut);
  std::vector<PixelBox> boxes;
  std::vector<int> reached;  // pixels whose neighbors are to be looked at
  const auto take = [&](int at) {
    open[static_cast<size_t>(at)] = false;
    reached.push_back(at);
  };
  for (int first = 0; first < side * side; ++first) {
    if (!open[static_cast<size_t>(first)]) continue;
    take(first);
    PixelBox box{side, side, 0, 0};
    while (!reached.empty()) {
      const int x = reached.back() % side, y = reached.back() / side;
      reached.pop_back();
      box = {std::min(box.left, x), std::min(box.top, y),
             std::max(box.right, x + 1), std::max(box.bottom, y + 1)};
      for (int v = std::max(0, y - 1); v <= std::min(side - 1, y + 1); ++v)
        for (int u = std::max(0, x - 1); u <= std::min(side - 1, x + 1); ++u)
          if (const int at = v * side + u; open[static_cast<size_t>(at)])
            take(at);
    }
    boxes.push_back(box);
  }
  return boxes;
}

}  // namespace chexnet
