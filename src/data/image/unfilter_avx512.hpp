// 64 rows a vector; `Up` moves the lanes, the one step that differs between
// AVX-512BW and VBMI.
#pragma once

#include "unfilter_wavefront.hpp"

namespace {

template <class Up>
struct Avx512 {
  using V = __m512i;
  using M = __mmask64;
  static constexpr int kLanes = 64;
  static V zero() { return _mm512_setzero_si512(); }
  static V all(uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static V load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(uint8_t* p, V v) { _mm512_storeu_si512(p, v); }
  static V unpack_low(V x, V y) { return _mm512_unpacklo_epi8(x, y); }
  static V unpack_high(V x, V y) { return _mm512_unpackhi_epi8(x, y); }
  static void transpose_groups(V* v) {
    const V a = v[0], b = v[16], c = v[32], d = v[48];
    const V ab_low = _mm512_shuffle_i64x2(a, b, 0x44),
            ab_high = _mm512_shuffle_i64x2(a, b, 0xEE);
    const V cd_low = _mm512_shuffle_i64x2(c, d, 0x44),
            cd_high = _mm512_shuffle_i64x2(c, d, 0xEE);
    v[0] = _mm512_shuffle_i64x2(ab_low, cd_low, 0x88);
    v[16] = _mm512_shuffle_i64x2(ab_low, cd_low, 0xDD);
    v[32] = _mm512_shuffle_i64x2(ab_high, cd_high, 0x88);
    v[48] = _mm512_shuffle_i64x2(ab_high, cd_high, 0xDD);
  }
  static V min(V x, V y) { return _mm512_min_epu8(x, y); }
  static V max(V x, V y) { return _mm512_max_epu8(x, y); }
  static V add(V x, V y) { return _mm512_add_epi8(x, y); }
  static V add_saturated(V x, V y) { return _mm512_adds_epu8(x, y); }
  static V subtract_saturated(V x, V y) { return _mm512_subs_epu8(x, y); }
  static V average_down(V x, V y) {
    return _mm512_sub_epi8(_mm512_avg_epu8(x, y),
                           _mm512_and_si512(_mm512_xor_si512(x, y), all(1)));
  }
  static V up(V x, V below) { return Up::up(x, below); }
  static M equal(V x, V y) { return _mm512_cmpeq_epi8_mask(x, y); }
  static M less_equal(V x, V y) { return _mm512_cmple_epu8_mask(x, y); }
  static V select(M m, V yes, V no) {
    return _mm512_mask_blend_epi8(m, no, yes);
  }
};

}  // namespace
