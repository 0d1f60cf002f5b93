// Writing panels: how a vector of channels of one pixel lands in its units.
#pragma once

#include "chexnet/engine/kernels.hpp"
#include "simd.hpp"

namespace chexnet {
namespace {

// Row p, channels c .. c + lanes, for a panel that feeds outputs (pairs along
// channels).
template <class S, bool Pair, class A = Accumulator<S>>
CHEXNET_INLINE void put_by_channels(Panel<A> panel, int64_t p, int c,
                                    Vec<A> v) {
  if constexpr (Pair)
    store(reinterpret_cast<Bf16*>(panel.units) +
              ((c / 32) * panel.rows + p) * 32 + c % 32,
          v);
  else
    store(panel.units + ((c / kBlock) * panel.rows + p) * kBlock + c % kBlock,
          v);
}
template <class A>
CHEXNET_INLINE Vec<A> get_by_channels(Panel<A> panel, int64_t p, int c) {
  return load(panel.units + ((c / kBlock) * panel.rows + p) * kBlock +
              c % kBlock);
}

#if defined(__AVX512BF16__)
CHEXNET_INLINE __m512i pair_load(const float* p) {
  return _mm512_loadu_si512(p);
}
CHEXNET_INLINE void pair_store(float* p, __m512i v) {
  _mm512_storeu_si512(p, v);
}
#endif

// The same for a panel that feeds a weight gradient. Pairs: pixels (0, 1), (2,
// 3), …; `rows` counts pixels, and pixels arrive in order.
template <class S, bool Pair, class A = Accumulator<S>>
CHEXNET_INLINE void put_by_pixels(Panel<A> panel, int64_t p, int c, Vec<A> v) {
#if defined(__AVX512BF16__)
  if constexpr (Pair) {
    const auto low = (__m512i)bf16_bits(v);
    float* unit = panel.units + ((c / kBlock) * panel.rows + p / 2) * kBlock;
    pair_store(unit, p % 2 == 0 ? low
                                : _mm512_or_si512(pair_load(unit),
                                                  _mm512_slli_epi32(low, 16)));
    return;
  }
#endif
  put_by_channels<S, false>(panel, p, c, v);
}

// The same in a padded image: unit i holds pixels (i, i + distance) for every
// i. Pixels of a row that are a multiple of `distance` apart arrive in order;
// `first` of them: to its left is padding.
template <class S, bool Pair, class A = Accumulator<S>>
CHEXNET_INLINE void put_in_row(Panel<A> panel, int64_t i, int c, Vec<A> v,
                               [[maybe_unused]] int distance,
                               [[maybe_unused]] bool first) {
#if defined(__AVX512BF16__)
  if constexpr (Pair) {
    const auto low = (__m512i)bf16_bits(v), high = _mm512_slli_epi32(low, 16);
    float* unit = panel.units + ((c / kBlock) * panel.rows + i) * kBlock;
    float* before = unit - distance * kBlock;
    pair_store(unit, low);
    pair_store(before, first ? high : _mm512_or_si512(pair_load(before), high));
    return;
  }
#endif
  put_by_channels<S, false>(panel, i, c, v);
}

}  // namespace
}  // namespace chexnet
