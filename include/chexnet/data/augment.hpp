// How a training picture is changed before the network sees it. A sample's
// change is drawn from (seed, position) alone, so that no thread, rank or
// restart matters; drawing and applying are two steps, and both are pure
// functions of their arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "chexnet/config/choices.hpp"
#include "chexnet/data/image/resize.hpp"

namespace chexnet {

// The changes that are allowed, and their limits: the config's data.train_crop
// and data.* keys of the same names.
struct Augmentation {
  TrainCrop crop = TrainCrop::kCenter;
  bool flip = false;
  double crop_area_min = 0.8, rotate_deg = 0, zoom = 0, contrast = 0;
  static Augmentation none() { return {}; }
  bool operator==(const Augmentation&) const = default;
};

// The changes of one sample. The default changes nothing.
struct DrawnAugmentation {
  TrainCrop crop = TrainCrop::kCenter;
  double area = 1;  // of the original that a random resized crop keeps, (0, 1]
  // Where a crop begins: 0 = left or top, 1 = as far as it goes.
  double at_x = 0, at_y = 0;
  bool flip = false;
  double degrees = 0, zoom = 1;  // around the center
  double contrast = 1;           // 1 = as it is

  bool warps() const { return degrees != 0 || zoom != 1; }
};
DrawnAugmentation draw_augmentation(const Augmentation& augmentation,
                                    uint64_t seed, uint64_t position);

// Gray pixels [side, side] that somebody else owns.
struct Square {
  const uint8_t* pixels = nullptr;
  int side = 0;
};

// The part of an original of `width` x `height` pixels to resize: the whole
// picture, or the rectangle of a random resized crop.
Region drawn_region(const DrawnAugmentation& drawn, int width, int height);

// Rotates and zooms `square`, cuts [crop, crop] out of it, mirrors that and
// changes its contrast. `into`: [crop, crop]. `scratch`: memory that is kept
// between calls. crop <= square.side.
void augment(Square square, const DrawnAugmentation& drawn, int crop,
             uint8_t* into, std::vector<uint8_t>& scratch);

}  // namespace chexnet
