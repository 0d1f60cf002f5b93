#include "chexnet/data/image/heat_map.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>

#include "chexnet/data/image/crop.hpp"

namespace chexnet {
namespace {

// The two pixels that output pixel i lies between, and the second one's weight.
struct Between {
  size_t first, second;
  float share;
};

// Along one side: `out` pixels from `low` to `high`, of a map whose `in` pixels
// fill `from` to `to`.
std::vector<Between> taps(int in, double from, double to, int out, double low,
                          double high) {
  std::vector<Between> taps;
  const double scale = in / (to - from), step = (high - low) / out;
  for (int i = 0; i < out; ++i) {
    const double wanted = (low + step * (i + 0.5) - from) * scale - 0.5;
    const double at = std::clamp(wanted, 0.0, in - 1.0);
    const auto first = static_cast<size_t>(at);
    const size_t last = static_cast<size_t>(in) - 1;
    taps.push_back({first, std::min(first + 1, last),
                    static_cast<float>(at - static_cast<double>(first))});
  }
  return taps;
}

}  // namespace

double Box::area() const {
  return std::max(0.0, right - left) * std::max(0.0, bottom - top);
}

bool Box::holds(double x, double y) const {
  return left <= x && x <= right && top <= y && y <= bottom;
}

Box intersection(const Box& a, const Box& b) {
  return {std::max(a.left, b.left), std::max(a.top, b.top),
          std::min(a.right, b.right), std::min(a.bottom, b.bottom)};
}

double intersection_over_union(const Box& a, const Box& b) {
  const double shared = intersection(a, b).area();
  const double all = a.area() + b.area() - shared;
  return all > 0 ? shared / all : 0;
}

Box center_crop_place(int size, int crop) {
  const double side = size;
  const double begin = center_crop_begin(size, crop) / side;
  const double end = begin + crop / side;
  return {begin, begin, end, end};
}

std::vector<float> resized(const HeatMap& map, int width, int height) {
  assert(map.width > 0 && map.height > 0 && width > 0 && height > 0);
  const Box &pixels = map.pixels, &place = map.place;
  const auto across = taps(map.width, pixels.left, pixels.right, width,
                           place.left, place.right);
  const auto down = taps(map.height, pixels.top, pixels.bottom, height,
                         place.top, place.bottom);
  const auto pitch = static_cast<size_t>(map.width);
  std::vector<float> values;
  values.reserve(across.size() * down.size());
  for (const Between& y : down) {
    const float* upper = &map.values[y.first * pitch];
    const float* lower = &map.values[y.second * pitch];
    for (const Between& x : across) {
      const float top = std::lerp(upper[x.first], upper[x.second], x.share);
      const float bottom = std::lerp(lower[x.first], lower[x.second], x.share);
      values.push_back(std::lerp(top, bottom, y.share));
    }
  }
  return values;
}

Peak peak_of(const HeatMap& map) {
  assert(!map.values.empty());
  const auto at = std::ranges::max_element(map.values) - map.values.begin();
  const auto column = at % map.width, row = at / map.width;
  const double x = (static_cast<double>(column) + 0.5) / map.width;
  const double y = (static_cast<double>(row) + 0.5) / map.height;
  const Box &pixels = map.pixels, &place = map.place;
  return {std::clamp(pixels.left + x * (pixels.right - pixels.left), place.left,
                     place.right),
          std::clamp(pixels.top + y * (pixels.bottom - pixels.top), place.top,
                     place.bottom)};
}

}  // namespace chexnet
