// 16 rows a vector: AArch64, whose ABI promises NEON.
#include <arm_neon.h>

#include "unfilter_kernels.hpp"
#include "unfilter_wavefront.hpp"

namespace {

struct Neon {
  using V = uint8x16_t;
  using M = uint8x16_t;
  static constexpr int kLanes = 16;
  static V zero() { return all(0); }
  static V all(uint8_t x) { return vdupq_n_u8(x); }
  static V load(const uint8_t* p) { return vld1q_u8(p); }
  static void store(uint8_t* p, V v) { vst1q_u8(p, v); }
  static V unpack_low(V x, V y) { return vzip1q_u8(x, y); }
  static V unpack_high(V x, V y) { return vzip2q_u8(x, y); }
  static void transpose_groups(V*) {}
  static V min(V x, V y) { return vminq_u8(x, y); }
  static V max(V x, V y) { return vmaxq_u8(x, y); }
  static V add(V x, V y) { return vaddq_u8(x, y); }
  static V add_saturated(V x, V y) { return vqaddq_u8(x, y); }
  static V subtract_saturated(V x, V y) { return vqsubq_u8(x, y); }
  static V average_down(V x, V y) { return vhaddq_u8(x, y); }
  static V up(V x, V below) { return vextq_u8(below, x, 15); }
  static M equal(V x, V y) { return vceqq_u8(x, y); }
  static M less_equal(V x, V y) { return vcleq_u8(x, y); }
  static V select(M m, V yes, V no) { return vbslq_u8(m, yes, no); }
};

}  // namespace

void chexnet::unfilter_neon(const uint8_t* lines, uint8_t* pixels,
                            size_t stride, int width, int height,
                            const uint8_t* above) {
  unfilter_image<Neon, 2>(lines, pixels, stride, width, height, above);
}
