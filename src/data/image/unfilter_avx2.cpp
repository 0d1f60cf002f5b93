// 32 rows a vector: processors with AVX2.
#include "unfilter_kernels.hpp"
#include "unfilter_wavefront.hpp"

namespace {

struct Avx2 {
  using V = __m256i;
  using M = __m256i;
  static constexpr int kLanes = 32;
  static V zero() { return _mm256_setzero_si256(); }
  static V all(uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static V load(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const V*>(p));
  }
  static void store(uint8_t* p, V v) {
    _mm256_storeu_si256(reinterpret_cast<V*>(p), v);
  }
  static V unpack_low(V x, V y) { return _mm256_unpacklo_epi8(x, y); }
  static V unpack_high(V x, V y) { return _mm256_unpackhi_epi8(x, y); }
  static void transpose_groups(V* v) {
    const V a = v[0], b = v[16];
    v[0] = _mm256_permute2x128_si256(a, b, 0x20);
    v[16] = _mm256_permute2x128_si256(a, b, 0x31);
  }
  static V min(V x, V y) { return _mm256_min_epu8(x, y); }
  static V max(V x, V y) { return _mm256_max_epu8(x, y); }
  static V add(V x, V y) { return _mm256_add_epi8(x, y); }
  static V add_saturated(V x, V y) { return _mm256_adds_epu8(x, y); }
  static V subtract_saturated(V x, V y) { return _mm256_subs_epu8(x, y); }
  static V average_down(V x, V y) {
    return _mm256_sub_epi8(_mm256_avg_epu8(x, y),
                           _mm256_and_si256(_mm256_xor_si256(x, y), all(1)));
  }
  static V up(V x, V below) {
    return _mm256_alignr_epi8(x, _mm256_permute2x128_si256(below, x, 0x21), 15);
  }
  static M equal(V x, V y) { return _mm256_cmpeq_epi8(x, y); }
  static M less_equal(V x, V y) {
    return equal(subtract_saturated(x, y), zero());
  }
  static V select(M m, V yes, V no) { return _mm256_blendv_epi8(no, yes, m); }
};

}  // namespace

void chexnet::unfilter_avx2(const uint8_t* lines, uint8_t* pixels,
                            size_t stride, int width, int height,
                            const uint8_t* above) {
  unfilter_image<Avx2, 2>(lines, pixels, stride, width, height, above);
}
