// 8-bit gray pixels in rows with room around them: SIMD kernels store whole
// vectors, so up to kRoom bytes before and after the pixels of a row may hold
// anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chexnet {

class GrayImage {
 public:
  static constexpr size_t kRoom = 64;  // bytes on either side of a row

  int width() const { return width_; }
  int height() const { return height_; }
  size_t stride() const { return stride_; }
  // The pixels are undefined afterwards; memory is kept for the next image.
  void reset(int width, int height);
  void assign(const uint8_t* pixels, int width,
              int height);  // [height, width]
  uint8_t* row(int y) {
    return &memory_[kRoom + static_cast<size_t>(y) * stride_];
  }
  const uint8_t* row(int y) const {
    return &memory_[kRoom + static_cast<size_t>(y) * stride_];
  }
  std::vector<uint8_t> contiguous() const;  // [height, width]

 private:
  int width_ = 0, height_ = 0;
  size_t stride_ = 0;
  std::vector<uint8_t> memory_;
};

}  // namespace chexnet
