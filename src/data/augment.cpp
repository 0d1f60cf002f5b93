// A resized picture on its way to the network:
//
//   square [side, side] -> rotated and zoomed -> crop [crop, crop]
//                       -> mirrored -> contrast
//
// A random crop begins at 0 .. side - crop, each position equally often: at *
// (slack + 1), rounded down, as `at` is in [0, 1).
#include "chexnet/data/augment.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "chexnet/core/philox.hpp"
#include "chexnet/data/image/crop.hpp"

namespace chexnet {
namespace {

// Rotation and zoom in one resampling; the border is repeated, as black wedges
// would be a cue.
Square rotate_and_zoom(Square square, double degrees, double zoom,
                       std::vector<uint8_t>& memory) {
  const int side = square.side;
  memory.resize(static_cast<size_t>(side) * static_cast<size_t>(side));

  const cv::Mat from(side, side, CV_8UC1, const_cast<uint8_t*>(square.pixels));
  cv::Mat to(side, side, CV_8UC1, memory.data());
  const auto center = static_cast<float>(side - 1) / 2;
  const cv::Mat matrix =
      cv::getRotationMatrix2D({center, center}, degrees, zoom);

  cv::warpAffine(from, to, matrix, to.size(), cv::INTER_LINEAR,
                 cv::BORDER_REPLICATE);
  return {memory.data(), side};
}

// Where the crop begins, along one axis.
int crop_begin(const DrawnAugmentation& drawn, double at, int side, int crop) {
  if (drawn.crop != TrainCrop::kRandom) return center_crop_begin(side, crop);
  const int slack = side - crop;
  return static_cast<int>(at * (slack + 1));
}

void cut(Square square, const DrawnAugmentation& drawn, int crop,
         uint8_t* into) {
  const auto stride = static_cast<size_t>(square.side);
  const auto width = static_cast<size_t>(crop);
  const auto x =
      static_cast<size_t>(crop_begin(drawn, drawn.at_x, square.side, crop));
  const auto y =
      static_cast<size_t>(crop_begin(drawn, drawn.at_y, square.side, crop));
  assert(x + width <= stride && y + width <= stride);

  const uint8_t* corner = square.pixels + y * stride + x;
  const auto copy = drawn.flip ? copy_crop_flipped : copy_crop;
  copy(corner, stride, width, width, into);
}

// Away from the mean of the picture, or towards it.
void change_contrast(uint8_t* pixels, size_t count, double factor) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += pixels[i];
  const double mean = static_cast<double>(sum) / static_cast<double>(count);

  for (size_t i = 0; i < count; ++i) {
    const long value = std::lround(mean + factor * (pixels[i] - mean));
    pixels[i] = static_cast<uint8_t>(std::clamp(value, 0L, 255L));
  }
}

}  // namespace

DrawnAugmentation draw_augmentation(const Augmentation& augmentation,
                                    uint64_t seed, uint64_t position) {
  // Draws happen in a fixed order whatever is switched on, so switching one off
  // leaves the others as they were.
  Random random(seed, Purpose::kAugment, position);
  DrawnAugmentation drawn;
  drawn.crop = augmentation.crop;
  drawn.area = random.uniform(augmentation.crop_area_min, 1.0);
  drawn.at_x = random.uniform();
  drawn.at_y = random.uniform();
  drawn.flip = random.chance(0.5) && augmentation.flip;
  drawn.degrees = augmentation.rotate_deg * random.uniform(-1, 1);
  drawn.zoom = 1 + augmentation.zoom * random.uniform(-1, 1);
  drawn.contrast = 1 + augmentation.contrast * random.uniform(-1, 1);
  return drawn;
}

Region drawn_region(const DrawnAugmentation& drawn, int width, int height) {
  assert(width > 0 && height > 0);
  Region region{0, 0, width, height};
  if (drawn.crop != TrainCrop::kResized) return region;

  const double fraction = std::sqrt(drawn.area);  // of each side
  region.width = std::max(1, static_cast<int>(std::lround(fraction * width)));
  region.height = std::max(1, static_cast<int>(std::lround(fraction * height)));
  region.x = static_cast<int>(drawn.at_x * (width - region.width + 1));
  region.y = static_cast<int>(drawn.at_y * (height - region.height + 1));
  return region;
}

void augment(Square square, const DrawnAugmentation& drawn, int crop,
             uint8_t* into, std::vector<uint8_t>& scratch) {
  assert(crop > 0 && crop <= square.side);
  if (drawn.warps())
    square = rotate_and_zoom(square, drawn.degrees, drawn.zoom, scratch);
  cut(square, drawn, crop, into);

  const auto pixels = static_cast<size_t>(crop) * static_cast<size_t>(crop);
  if (drawn.contrast != 1) change_contrast(into, pixels, drawn.contrast);
}

}  // namespace chexnet
