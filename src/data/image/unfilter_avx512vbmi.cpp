// Processors with AVX-512 VBMI (Ice Lake, Zen 4 and later).
#include "unfilter_avx512.hpp"
#include "unfilter_kernels.hpp"

namespace {

struct Permute {
  static __m512i up(__m512i x, __m512i below) {
    alignas(64) static constexpr auto kOrder = [] {
      struct {
        uint8_t at[64];
      } order{};
      order.at[0] = 64 + 63;  // the last lane of the second vector
      for (int k = 1; k < 64; ++k) order.at[k] = static_cast<uint8_t>(k - 1);
      return order;
    }();
    return _mm512_permutex2var_epi8(x, _mm512_load_si512(kOrder.at), below);
  }
};

}  // namespace

void chexnet::unfilter_avx512vbmi(const uint8_t* lines, uint8_t* pixels,
                                  size_t stride, int width, int height,
                                  const uint8_t* above) {
  unfilter_image<Avx512<Permute>, 2>(lines, pixels, stride, width, height,
                                     above);
}
