// Undoes PNG's scanline filters (PNG specification, section 9) for one-byte
// pixels.
//
// Paeth prediction makes each pixel wait for its left and upper neighbors. The
// vector kernels walk a wavefront: a lane holds one row and lags one pixel
// behind the row above, so a whole column of rows advances together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "chexnet/data/image/gray_image.hpp"

namespace chexnet {

// Readable bytes that must be before and after the filtered lines; their values
// do not matter.
constexpr size_t kUnfilterRoom = 512;

struct UnfilterKernel {
  const char* name;
  // `lines`: `height` lines of one filter byte (0..4, checked by the caller)
  // and `width` bytes. `pixels`: rows `stride` bytes apart with
  // GrayImage::kRoom around them. `above`: the row over the first one,
  // kUnfilterRoom readable bytes longer than it. Thread-safe.
  void (*rows)(const uint8_t* lines, uint8_t* pixels, size_t stride, int width,
               int height, const uint8_t* above);
};

// The kernels for this processor, fastest first; the last is plain C++.
std::span<const UnfilterKernel> unfilter_kernels();

// The row above the first row of an image: zeros. This thread's, until its next
// call.
const uint8_t* row_of_zeros(int width);

// A whole image.
void unfilter(const UnfilterKernel& kernel, const uint8_t* lines,
              GrayImage& into);

}  // namespace chexnet
