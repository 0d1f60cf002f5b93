#include <immintrin.h>

#include <algorithm>

#include "resize_kernels.hpp"

namespace {

__m128i load8_as_int16(const uint8_t* p) {
  return _mm_cvtepu8_epi16(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}

// Four partial sums of one output pixel.
template <int kMost>
__m128i partial_sums(const uint8_t* p, const int16_t* w, int most) {
  __m128i sum = _mm_madd_epi16(
      load8_as_int16(p), _mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  for (int j = 8; j < (kMost > 0 ? kMost : most); j += 8)
    sum = _mm_add_epi32(
        sum, _mm_madd_epi16(
                 load8_as_int16(p + j),
                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + j))));
  return sum;
}

uint8_t one_pixel(const uint8_t* p, const int16_t* w, int most, int shift) {
  __m128i sums = partial_sums<0>(p, w, most);
  sums = _mm_hadd_epi32(sums, sums);
  const int value =
      (_mm_cvtsi128_si32(_mm_hadd_epi32(sums, sums)) + (1 << (shift - 1))) >>
      shift;
  return static_cast<uint8_t>(std::clamp(value, 0, 255));
}

// Outputs 1, 2, … of an exact 4:1 shrink, 16 at a time with 8-bit weights;
// returns where it stopped.
int quarter(const uint8_t* line, const chexnet::Taps& taps, int out,
            uint8_t* into) {
  const auto repeated = [&](const int8_t* four) {
    int bits = 0;
    __builtin_memcpy(&bits, four, 4);
    return _mm256_set1_epi32(bits);
  };
  const __m256i left = repeated(taps.quarter_weight),
                right = repeated(taps.quarter_weight + 4);
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i half = _mm256_set1_epi32(1 << (taps.quarter_shift - 1));
  const __m128i shift = _mm_cvtsi32_si128(taps.quarter_shift);
  const auto eight = [&](int x) {
    const auto pairs = [&](int at, __m256i weights) {
      return _mm256_maddubs_epi16(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line + at)),
          weights);
    };
    const __m256i sums =
        _mm256_add_epi16(pairs(4 * x - 2, left), pairs(4 * x + 2, right));
    return _mm256_sra_epi32(
        _mm256_add_epi32(_mm256_madd_epi16(sums, ones), half), shift);
  };
  int x = 1;
  for (; x + 16 < out; x += 16) {
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(eight(x), eight(x + 8)), 0xD8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + x),
                     _mm_packus_epi16(_mm256_castsi256_si128(words),
                                      _mm256_extracti128_si256(words, 1)));
  }
  return x;
}

template <int kMost>
void horizontal_of(const uint8_t* line, const chexnet::Taps& taps,
                   uint8_t* into) {
  const int out = static_cast<int>(taps.first.size()), most = taps.most;
  const int* first = taps.first.data();
  const int16_t* weight = taps.weight.data();
  const __m128i half = _mm_set1_epi32(1 << (taps.shift - 1));
  const __m128i shift = _mm_cvtsi32_si128(taps.shift);
  const auto sums_at = [&](int x) {
    return partial_sums<kMost>(line + first[x],
                               weight + static_cast<ptrdiff_t>(x) * most, most);
  };
  const auto four = [&](int x) {
    const __m128i sums =
        _mm_hadd_epi32(_mm_hadd_epi32(sums_at(x), sums_at(x + 1)),
                       _mm_hadd_epi32(sums_at(x + 2), sums_at(x + 3)));
    return _mm_sra_epi32(_mm_add_epi32(sums, half), shift);
  };
  int x = 0;
  if (taps.quarter_shift > 0) {
    into[0] = one_pixel(line + first[0], weight, most, taps.shift);
    x = quarter(line, taps, out, into);
  }
  for (; x + 16 <= out; x += 16) {
    const __m128i low = _mm_packs_epi32(four(x), four(x + 4));
    const __m128i high = _mm_packs_epi32(four(x + 8), four(x + 12));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + x),
                     _mm_packus_epi16(low, high));
  }
  for (; x < out; ++x) {
    into[x] =
        one_pixel(line + first[x], weight + static_cast<ptrdiff_t>(x) * most,
                  most, taps.shift);
  }
}

void horizontal(const uint8_t* line, const chexnet::Taps& taps, uint8_t* into) {
  if (taps.most == 8)
    horizontal_of<8>(line, taps, into);
  else
    horizontal_of<0>(line, taps, into);
}

void vertical(const uint8_t* const* rows, const int16_t* weight, int count,
              int shift, int width, uint8_t* into) {
  const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
  const __m128i by = _mm_cvtsi32_si128(shift);
  int x = 0;
  for (; x + 16 <= width; x += 16) {
    __m256i low = half, high = half;  // pixels 0-3, 8-11 and 4-7, 12-15
    for (int j = 0; j < count; j += 2) {
      const bool pair = j + 1 < count;
      const auto row = [&](int k) {
        return _mm256_cvtepu8_epi16(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k] + x)));
      };
      const __m256i a = row(j), b = pair ? row(j + 1) : _mm256_setzero_si256();
      const __m256i w = _mm256_set1_epi32(static_cast<uint16_t>(weight[j]) |
                                          (pair ? weight[j + 1] << 16 : 0));
      low = _mm256_add_epi32(low,
                             _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w));
      high = _mm256_add_epi32(
          high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w));
    }
    const __m256i words = _mm256_packs_epi32(_mm256_sra_epi32(low, by),
                                             _mm256_sra_epi32(high, by));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + x),
                     _mm_packus_epi16(_mm256_castsi256_si128(words),
                                      _mm256_extracti128_si256(words, 1)));
  }
  for (; x < width; ++x) {
    int sum = 1 << (shift - 1);
    for (int j = 0; j < count; ++j) sum += weight[j] * rows[j][x];
    const int value = sum >> shift;
    into[x] = static_cast<uint8_t>(std::clamp(value, 0, 255));
  }
}

}  // namespace

const chexnet::ResizeKernels chexnet::kResizeAvx2{horizontal, vertical};
