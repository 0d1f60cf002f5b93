// 16 rows a vector: processors with SSE4.1.
#include "unfilter_kernels.hpp"
#include "unfilter_wavefront.hpp"

namespace {

struct Sse {
  using V = __m128i;
  using M = __m128i;
  static constexpr int kLanes = 16;
  static V zero() { return _mm_setzero_si128(); }
  static V all(uint8_t x) { return _mm_set1_epi8(static_cast<char>(x)); }
  static V load(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const V*>(p));
  }
  static void store(uint8_t* p, V v) {
    _mm_storeu_si128(reinterpret_cast<V*>(p), v);
  }
  static V unpack_low(V x, V y) { return _mm_unpacklo_epi8(x, y); }
  static V unpack_high(V x, V y) { return _mm_unpackhi_epi8(x, y); }
  static void transpose_groups(V*) {}
  static V min(V x, V y) { return _mm_min_epu8(x, y); }
  static V max(V x, V y) { return _mm_max_epu8(x, y); }
  static V add(V x, V y) { return _mm_add_epi8(x, y); }
  static V add_saturated(V x, V y) { return _mm_adds_epu8(x, y); }
  static V subtract_saturated(V x, V y) { return _mm_subs_epu8(x, y); }
  static V average_down(V x, V y) {
    return _mm_sub_epi8(_mm_avg_epu8(x, y),
                        _mm_and_si128(_mm_xor_si128(x, y), all(1)));
  }
  static V up(V x, V below) { return _mm_alignr_epi8(x, below, 15); }
  static M equal(V x, V y) { return _mm_cmpeq_epi8(x, y); }
  static M less_equal(V x, V y) {
    return equal(subtract_saturated(x, y), zero());
  }
  static V select(M m, V yes, V no) { return _mm_blendv_epi8(no, yes, m); }
};

}  // namespace

void chexnet::unfilter_sse41(const uint8_t* lines, uint8_t* pixels,
                             size_t stride, int width, int height,
                             const uint8_t* above) {
  unfilter_image<Sse, 2>(lines, pixels, stride, width, height, above);
}
