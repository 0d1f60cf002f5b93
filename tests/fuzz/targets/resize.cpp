// Any region of any picture to any size: the area kernel against its
// definition, and a region against the same pixels as a whole picture.
#include "fuzz/resize_input.hpp"

namespace chexnet::fuzz {
namespace {

// The mean over the box of each output pixel, halves up, in whole numbers:
// weights are overlaps in units of 1 / size.
std::vector<uint8_t> area_by_definition(const GrayImage& image, Region r,
                                        int size) {
  std::vector<uint8_t> out;
  const auto overlap = [size](int64_t pixel, int64_t box, int64_t in) {
    return std::max<int64_t>(0, std::min((pixel + 1) * size, (box + 1) * in) -
                                    std::max(pixel * size, box * in));
  };
  const int64_t total = int64_t{r.width} * r.height;
  // The pixels that a box touches: [first, last).
  const auto first = [size](int box, int in) { return box * in / size; };
  const auto last = [size](int box, int in) {
    return ((box + 1) * in + size - 1) / size;
  };
  for (int oy = 0; oy < size; ++oy)
    for (int ox = 0; ox < size; ++ox) {
      int64_t sum = 0;
      for (int y = first(oy, r.height); y < last(oy, r.height); ++y) {
        const int64_t down = overlap(y, oy, r.height);
        for (int x = first(ox, r.width); x < last(ox, r.width); ++x)
          sum += down * overlap(x, ox, r.width) * image.row(r.y + y)[r.x + x];
      }
      out.push_back(static_cast<uint8_t>((2 * sum + total) / (2 * total)));
    }
  return out;
}

void run(Bytes bytes) {
  const ResizeInput in = resize_input(bytes, 64);
  GrayImage part;
  part.reset(in.region.width, in.region.height);
  for (int y = 0; y < in.region.height; ++y)
    std::copy_n(in.image.row(in.region.y + y) + in.region.x, in.region.width,
                part.row(y));
  for (const auto kind : {ResizeKind::kAntialias, ResizeKind::kArea}) {
    const auto out = resized(in.image, in.region, in.size, kind);
    require(resized(part, {0, 0, in.region.width, in.region.height}, in.size,
                    kind) == out,
            "a region is resized as a picture of its own");
    if (kind == ResizeKind::kArea)
      require(area_by_definition(in.image, in.region, in.size) == out,
              "area is the mean of boxes");
  }
}

const Registered kTarget{{"resize", run, nullptr, resize_seeds}};

}  // namespace
}  // namespace chexnet::fuzz
