// Writing panels: how a vector of channels of one pixel lands in its units.
#pragma once

#include "kernels.hpp"
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

// Row i of a panel of pairs, from the unit of channel c on.
CHEXNET_INLINE float* pairs_at(Panel<float> panel, int64_t i, int c) {
  const int in_block = kLanes<float> == kBlock ? 0 : c % kBlock;
  return panel.units + ((c / kBlock) * panel.rows + i) * kBlock + in_block;
}
// A vector of units that hold pairs, as bits.
CHEXNET_INLINE Vec<uint32_t> load_pairs(const float* p) {
  Vec<uint32_t> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
CHEXNET_INLINE void store_pairs(float* p, Vec<uint32_t> v) {
  std::memcpy(p, &v, sizeof v);
}

// The same for a panel that feeds a weight gradient. Pairs: pixels (0, 1), (2,
// 3), …; `rows` counts pixels, and pixels arrive in order.
template <class S, bool Pair, class A = Accumulator<S>>
CHEXNET_INLINE void put_by_pixels(Panel<A> panel, int64_t p, int c, Vec<A> v) {
  if constexpr (Pair) {
    const Vec<uint32_t> low = bf16_bits(v);
    float* unit = pairs_at(panel, p / 2, c);
    store_pairs(unit, p % 2 == 0 ? low : load_pairs(unit) | low << 16);
  } else {
    put_by_channels<S, false>(panel, p, c, v);
  }
}

// The same in a padded image: unit i holds pixels (i, i + distance) for every
// i. Pixels of a row that are a multiple of `distance` apart arrive in order;
// `first` of them: to its left is padding.
template <class S, bool Pair, class A = Accumulator<S>>
CHEXNET_INLINE void put_in_row(Panel<A> panel, int64_t i, int c, Vec<A> v,
                               [[maybe_unused]] int distance,
                               [[maybe_unused]] bool first) {
  if constexpr (Pair) {
    const Vec<uint32_t> low = bf16_bits(v), high = low << 16;
    float* unit = pairs_at(panel, i, c);
    float* before = unit - int64_t{distance} * kBlock;
    store_pairs(unit, low);
    store_pairs(before, first ? high : load_pairs(before) | high);
  } else {
    put_by_channels<S, false>(panel, i, c, v);
  }
}

}  // namespace
}  // namespace chexnet
