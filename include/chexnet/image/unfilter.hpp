// Undoes PNG's scanline filters (PNG specification, section 9) for one-byte pixels.
//
// Paeth prediction makes each pixel wait for its left and upper neighbours. The vector kernels walk
// a wavefront: a lane holds one row and lags one pixel behind the row above, so a whole column of
// rows advances together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "chexnet/image/gray_image.hpp"

namespace chexnet {

// Readable bytes that must lie before and after the filtered lines; their values do not matter.
constexpr std::size_t kUnfilterRoom = 512;

struct UnfilterKernel {
  const char* name;
  // `lines`: into.height() lines of one filter byte (0..4, checked by the caller) and into.width()
  // bytes. Thread-safe.
  void (*run)(const std::uint8_t* lines, GrayImage& into);
};

// What this processor can run, fastest first; the last is plain C++.
std::span<const UnfilterKernel> unfilter_kernels();

}  // namespace chexnet
