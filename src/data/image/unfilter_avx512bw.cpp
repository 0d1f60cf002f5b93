// Processors with AVX-512BW (Skylake-SP and Cascade Lake servers).
#include "unfilter_avx512.hpp"
#include "unfilter_kernels.hpp"

namespace {

struct Align {
  static __m512i up(__m512i x, __m512i below) {
    return _mm512_alignr_epi8(x, _mm512_alignr_epi64(x, below, 6), 15);
  }
};

}  // namespace

void chexnet::unfilter_avx512bw(const uint8_t* lines, uint8_t* pixels,
                                size_t stride, int width, int height,
                                const uint8_t* above) {
  unfilter_image<Avx512<Align>, 2>(lines, pixels, stride, width, height, above);
}
