// A picture, a region of it and a size, made of the input.
#pragma once

#include <algorithm>

#include "chexnet/data/image/resize.hpp"
#include "target.hpp"

namespace chexnet::fuzz {

struct ResizeInput {
  GrayImage image;
  Region region;
  int size = 1;
};

// Sides of at most `most`. The pixels are the rest of the input, repeated.
inline ResizeInput resize_input(Bytes bytes, int most) {
  Reader choices(bytes);
  ResizeInput in;
  const int width = choices.side(most), height = choices.side(most);
  in.size = choices.side(most);
  in.region.x = choices.number(0, width - 1);
  in.region.y = choices.number(0, height - 1);
  in.region.width = choices.number(1, width - in.region.x);
  in.region.height = choices.number(1, height - in.region.y);
  in.image.reset(width, height);
  const Bytes pixels = choices.rest();
  size_t used = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      in.image.row(y)[x] =
          pixels.empty()
              ? uint8_t{0}
              : std::to_integer<uint8_t>(pixels[used++ % pixels.size()]);
  return in;
}

inline std::vector<uint8_t> resized(const GrayImage& image, Region region,
                                    int size, ResizeKind kind) {
  std::vector<uint8_t> out(static_cast<size_t>(size) *
                           static_cast<size_t>(size));
  resize(image, region, size, kind, out.data());
  return out;
}

inline std::vector<std::string> resize_seeds() {
  const std::string pixels = "\xFF\x20\x80 some pixels \x90\x03";
  return {
      raw("\0\x3f\x08\0\x1f\x08\0\x0f\x08\0\0\0\0\xff\xff\xff\xff") + pixels,
      raw("\0\x10\x08\0\x1f\x08\0\x3f\x08\0\x03\0\x04\0\x08\0\x09") + pixels,
      raw("\0\x3f\x08\0\x3f\x08\0\x0f\x08\0\0\0\0\0\x3f\0\x3f") + pixels};
}

}  // namespace chexnet::fuzz
