// Neighbors of a pixel x, all already unfiltered:
//
//   c b     the row above (zeros over the first one)
//   a x     this row (zeros before its first pixel)
#include "unfilter.hpp"

#include <cassert>
#include <cstdlib>
#include <vector>

#include "unfilter_kernels.hpp"

namespace chexnet {
namespace {

// Of the left (a), upper (b) and upper left (c) neighbors the one next to a + b
// - c.
int paeth(int a, int b, int c) {
  const int pa = std::abs(b - c), pb = std::abs(a - c),
            pc = std::abs(a + b - 2 * c);
  if (pa <= pb && pa <= pc) return a;
  return pb <= pc ? b : c;
}

// The filter's prediction of a pixel.
int predicted(int filter, int a, int b, int c) {
  switch (filter) {
    case 0:
      return 0;
    case 1:
      return a;
    case 2:
      return b;
    case 3:
      return (a + b) / 2;
    default:
      assert(filter == 4);
      return paeth(a, b, c);
  }
}

void unfilter_plain(const uint8_t* lines, uint8_t* pixels, size_t stride,
                    int width, int height, const uint8_t* above) {
  for (int y = 0; y < height; ++y) {
    const int filter = *lines++;
    uint8_t* row = pixels + static_cast<size_t>(y) * stride;
    int a = 0, c = 0;
    for (int x = 0; x < width; ++x) {
      const int b = above[x];
      a = row[x] = static_cast<uint8_t>(lines[x] + predicted(filter, a, b, c));
      c = b;
    }
    lines += width;
    above = row;
  }
}

std::vector<UnfilterKernel> supported() {
  std::vector<UnfilterKernel> kernels;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512bw"))
    kernels.push_back({"avx512vbmi", unfilter_avx512vbmi});
  if (__builtin_cpu_supports("avx512bw"))
    kernels.push_back({"avx512bw", unfilter_avx512bw});
  if (__builtin_cpu_supports("avx2"))
    kernels.push_back({"avx2", unfilter_avx2});
  if (__builtin_cpu_supports("sse4.1"))
    kernels.push_back({"sse4.1", unfilter_sse41});
#elif defined(__aarch64__)
  kernels.push_back({"neon", unfilter_neon});
#endif
  kernels.push_back({"plain", unfilter_plain});
  return kernels;
}

}  // namespace

const uint8_t* row_of_zeros(int width) {
  thread_local std::vector<uint8_t> zeros;
  const size_t needed = static_cast<size_t>(width) + kUnfilterRoom;
  if (zeros.size() < needed) zeros.resize(needed);
  return zeros.data();
}

void unfilter(const UnfilterKernel& kernel, const uint8_t* lines,
              GrayImage& into) {
  kernel.rows(lines, into.row(0), into.stride(), into.width(), into.height(),
              row_of_zeros(into.width()));
}

std::span<const UnfilterKernel> unfilter_kernels() {
  static const std::vector<UnfilterKernel> kernels = supported();
  return kernels;
}

}  // namespace chexnet
