#include "chexnet/data/image/crop.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace chexnet {
namespace {

void flipped_plain(const uint8_t* from, size_t stride, size_t width,
                   size_t height, uint8_t* into) {
  for (size_t y = 0; y < height; ++y, from += stride, into += width)
    std::reverse_copy(from, from + width, into);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void flipped_avx2(const uint8_t* from,
                                                  size_t stride, size_t width,
                                                  size_t height,
                                                  uint8_t* into) {
  // 32 pixels from the right end: each half's bytes turned round, then the
  // halves exchanged.
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  for (size_t y = 0; y < height; ++y, from += stride, into += width) {
    size_t x = 0;
    for (; x + 32 <= width; x += 32) {
      const __m256i pixels = _mm256_loadu_si256(
          reinterpret_cast<const __m256i*>(from + width - 32 - x));
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(into + x),
          _mm256_permute4x64_epi64(_mm256_shuffle_epi8(pixels, order), 0x4E));
    }
    for (; x < width; ++x) into[x] = from[width - 1 - x];
  }
}
#endif

}  // namespace

void copy_crop(const uint8_t* from, size_t stride, size_t width, size_t height,
               uint8_t* into) {
  assert(width <= stride || height <= 1);
  for (size_t y = 0; y < height; ++y)
    std::memcpy(into + y * width, from + y * stride, width);
}

void copy_crop_flipped(const uint8_t* from, size_t stride, size_t width,
                       size_t height, uint8_t* into) {
  assert(width <= stride || height <= 1);
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("avx2");
  if (fast) return flipped_avx2(from, stride, width, height, into);
#endif
  flipped_plain(from, stride, width, height, into);
}

}  // namespace chexnet
