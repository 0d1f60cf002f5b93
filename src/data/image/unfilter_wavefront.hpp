// The wavefront kernel, written once over a vector type. Included by one file
// per instruction set, each compiled for it; everything lives in an unnamed
// namespace so that no code for one processor can be linked into another's
// path.
//
// A vector type V (`Lanes`) offers: kLanes bytes, unpack_low/high within
// 128-bit groups, transpose_groups (the square transpose of those groups), min,
// max, add, average, saturating add and subtract, `up` (every lane takes its
// neighbor below; lane 0 takes the last lane of the second vector), masks.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

// Transposes a square of kLanes x kLanes bytes: each 16 x 16 square, then the
// squares.
template <class L>
inline void transpose(typename L::V* block) {
  typename L::V t[16];
  for (int g = 0; g < L::kLanes; g += 16) {
    typename L::V* r = block + g;
    for (int round = 0; round < 2; ++round) {
      for (ptrdiff_t i = 0; i < 8; ++i) {
        t[2 * i] = L::unpack_low(r[i], r[i + 8]);
        t[2 * i + 1] = L::unpack_high(r[i], r[i + 8]);
      }
      for (ptrdiff_t i = 0; i < 8; ++i) {
        r[2 * i] = L::unpack_low(t[i], t[i + 8]);
        r[2 * i + 1] = L::unpack_high(t[i], t[i + 8]);
      }
    }
  }
  for (int j = 0; j < 16; ++j) L::transpose_groups(block + j);
}

// One band of K * kLanes rows. `source[k]` points k bytes before row k's
// pixels, so that source[k] + t is what lane k needs at time t; `target[k]`
// likewise. Rows from `rows` on do not exist: their sources are readable,
// nothing is stored to their targets. K vectors are in flight, as one alone
// would wait for its result.
template <class L, int K, bool kAllPaeth>
void unfilter_band(const uint8_t* const* source, uint8_t* const* target,
                   const uint8_t* filters, const uint8_t* above, int rows,
                   int width) {
  using V = typename L::V;
  using M = typename L::M;
  constexpr int kRows = K * L::kLanes;
  alignas(64) uint8_t lane_numbers[kRows];
  for (int k = 0; k < kRows; ++k) lane_numbers[k] = static_cast<uint8_t>(k);
  V left[K], corner[K], lane[K];
  [[maybe_unused]] M is_sub[K], is_up[K], is_average[K], is_paeth[K];
  for (int q = 0; q < K; ++q) {
    left[q] = corner[q] = L::zero();
    lane[q] = L::load(lane_numbers + q * L::kLanes);
    const V f = L::load(filters + q * L::kLanes);
    is_sub[q] = L::equal(f, L::all(1));
    is_up[q] = L::equal(f, L::all(2));
    is_average[q] = L::equal(f, L::all(3));
    is_paeth[q] = L::equal(f, L::all(4));
  }
  for (int t0 = 0; t0 < width + kRows; t0 += L::kLanes) {
    V block[K][L::kLanes];
    for (int q = 0; q < K; ++q) {
      for (int j = 0; j < L::kLanes; ++j)
        block[q][j] = L::load(source[q * L::kLanes + j] + t0);
      transpose<L>(block[q]);
    }
    for (int j = 0; j < L::kLanes; ++j) {
      const int t = t0 + j;
      V upper[K];
      upper[0] = L::up(left[0], L::all(above[t]));
      for (int q = 1; q < K; ++q) upper[q] = L::up(left[q], left[q - 1]);
      for (int q = 0; q < K; ++q) {
        const V a = left[q], b = upper[q], c = corner[q], raw = block[q][j];
        // Paeth without absolute differences (the form of stb_image): with lo,
        // hi = min, max(a, b), hi when 2(c - lo) <= hi - c, else lo when 2(hi -
        // c) <= c - lo, else c. Differences below zero count as zero, which
        // changes no outcome.
        const V lo = L::min(a, b), hi = L::max(a, b);
        const V over = L::subtract_saturated(hi, c),
                under = L::subtract_saturated(c, lo);
        const M low = L::less_equal(L::add_saturated(over, over), under);
        const M high = L::less_equal(L::add_saturated(under, under), over);
        V out;
        if constexpr (kAllPaeth) {  // the additions wait for nothing
          out = L::select(high, L::add(raw, hi),
                          L::select(low, L::add(raw, lo), L::add(raw, c)));
        } else {
          const V paeth = L::select(high, hi, L::select(low, lo, c));
          V predicted = L::select(is_paeth[q], paeth, L::zero());
          predicted = L::select(is_sub[q], a, predicted);
          predicted = L::select(is_up[q], b, predicted);
          predicted =
              L::select(is_average[q], L::average_down(a, b), predicted);
          out = L::add(raw, predicted);
        }
        // Left of the image is zero.
        if (t < kRows)
          out =
              L::select(L::less_equal(lane[q], L::all(static_cast<uint8_t>(t))),
                        out, L::zero());
        block[q][j] = out;
        left[q] = out;
        corner[q] = b;
      }
    }
    for (int q = 0; q < K; ++q) {
      transpose<L>(block[q]);
      for (int j = 0; j < L::kLanes; ++j) {
        const int k = q * L::kLanes + j, x = t0 - k;
        if (k < rows && x > -L::kLanes && x < width)
          L::store(target[k] + t0, block[q][j]);
      }
    }
  }
}

// See UnfilterKernel::run. Bands follow each other as each needs the last row
// of the one above.
template <class L, int K>
void unfilter_image(const uint8_t* lines, uint8_t* pixels, size_t stride,
                    int width, int height, const uint8_t* above) {
  constexpr int kRows = K * L::kLanes;
  const size_t line = static_cast<size_t>(width) + 1;
  for (int y0 = 0; y0 < height; y0 += kRows) {
    const int rows = height - y0 < kRows ? height - y0 : kRows;
    const uint8_t* source[kRows];
    uint8_t* target[kRows];
    alignas(64) uint8_t filters[kRows];
    bool all_paeth = true;
    for (int k = 0; k < kRows; ++k) {
      const int y = y0 + (k < rows ? k : rows - 1);
      const uint8_t* from = lines + static_cast<size_t>(y) * line;
      filters[k] = from[0];
      all_paeth = all_paeth && from[0] == 4;
      source[k] = from + 1 - k;
      target[k] = pixels + static_cast<size_t>(y) * stride - k;
    }
    if (all_paeth)
      unfilter_band<L, K, true>(source, target, filters, above, rows, width);
    else
      unfilter_band<L, K, false>(source, target, filters, above, rows, width);
    above = pixels + static_cast<size_t>(y0 + rows - 1) * stride;
  }
}

}  // namespace
