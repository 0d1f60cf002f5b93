// 64 rows a vector; `Up` moves the lanes, the one step that differs between AVX-512BW and VBMI.
#pragma once

#include "unfilter_wavefront.hpp"

namespace {

template <class Up>
struct Avx512 {
  using V = __m512i;
  using M = __mmask64;
  static constexpr int kLanes = 64;
  static V zero() { return _mm512_setzero_si512(); }
  static V all(std::uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static V load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::uint8_t* p, V v) { _mm512_storeu_si512(p, v); }
  static V load16(const std::uint8_t* const* rows, int at) {
    const auto quarter = [&](int k) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k] + at));
    };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(quarter(0)), quarter(16), 1);
    const __m256i high =
        _mm256_inserti128_si256(_mm256_castsi128_si256(quarter(32)), quarter(48), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  static void store16(V v, std::uint8_t* const* rows, int at) {
    const auto quarter = [&](int k, __m128i part) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(rows[k] + at), part);
    };
    quarter(0, _mm512_castsi512_si128(v));
    quarter(16, _mm512_extracti32x4_epi32(v, 1));
    quarter(32, _mm512_extracti32x4_epi32(v, 2));
    quarter(48, _mm512_extracti32x4_epi32(v, 3));
  }
  static V unpack_low(V x, V y) { return _mm512_unpacklo_epi8(x, y); }
  static V unpack_high(V x, V y) { return _mm512_unpackhi_epi8(x, y); }
  static V min(V x, V y) { return _mm512_min_epu8(x, y); }
  static V max(V x, V y) { return _mm512_max_epu8(x, y); }
  static V add(V x, V y) { return _mm512_add_epi8(x, y); }
  static V add_saturated(V x, V y) { return _mm512_adds_epu8(x, y); }
  static V subtract_saturated(V x, V y) { return _mm512_subs_epu8(x, y); }
  static V average_down(V x, V y) {
    return _mm512_sub_epi8(_mm512_avg_epu8(x, y), _mm512_and_si512(_mm512_xor_si512(x, y), all(1)));
  }
  static V up(V x, V below) { return Up::up(x, below); }
  static M equal(V x, V y) { return _mm512_cmpeq_epi8_mask(x, y); }
  static M less_equal(V x, V y) { return _mm512_cmple_epu8_mask(x, y); }
  static V select(M m, V yes, V no) { return _mm512_mask_blend_epi8(m, no, yes); }
};

}  // namespace
