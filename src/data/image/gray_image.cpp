// row(y) = memory + kRoom + y * stride: at least kRoom bytes lie before and
// after each row's pixels, those between two rows belonging to both. Strides
// are multiples of 64, as vectors are loaded.
#include "chexnet/data/image/gray_image.hpp"

#include <algorithm>
#include <cassert>

namespace chexnet {

void GrayImage::reset(int width, int height) {
  assert(width > 0 && height > 0);
  width_ = width;
  height_ = height;
  stride_ = (static_cast<size_t>(width) + 2 * kRoom + 63) / 64 * 64;
  const size_t bytes = stride_ * static_cast<size_t>(height) + 2 * kRoom;
  if (memory_.size() < bytes) memory_.resize(bytes);
}

void GrayImage::assign(const uint8_t* pixels, int width, int height) {
  reset(width, height);
  for (int y = 0; y < height; ++y, pixels += width)
    std::copy_n(pixels, width, row(y));
}

std::vector<uint8_t> GrayImage::contiguous() const {
  std::vector<uint8_t> pixels;
  pixels.reserve(static_cast<size_t>(width_) * static_cast<size_t>(height_));
  for (int y = 0; y < height_; ++y)
    pixels.insert(pixels.end(), row(y), row(y) + width_);
  return pixels;
}

}  // namespace chexnet
