#include <algorithm>

#include "resize_kernels.hpp"

namespace chexnet {
namespace {

// Weights are integers with `shift` bits after the point, as in PyTorch's uint8
// kernel: the sum is exact, and one rounding ends it.
uint8_t rounded(int32_t sum, int shift) {
  return static_cast<uint8_t>(
      std::clamp((sum + (1 << (shift - 1))) >> shift, 0, 255));
}

// The reference of the kernels for vectors, which must give equal bytes.
void horizontal(const uint8_t* line, const Taps& taps, uint8_t* into) {
  const auto most = static_cast<size_t>(taps.most);
  for (size_t x = 0; x < taps.first.size(); ++x) {
    const int16_t* w = &taps.weight[x * most];
    const uint8_t* p = line + taps.first[x];
    int32_t sum = 0;
    for (size_t j = 0; j < most; ++j)
      if (w[j] != 0)
        sum += w[j] * p[j];  // after the last tap there may be no pixel
    into[x] = rounded(sum, taps.shift);
  }
}

void vertical(const uint8_t* const* rows, const int16_t* weight, int count,
              int shift, int width, uint8_t* into) {
  for (int x = 0; x < width; ++x) {
    int32_t sum = 0;
    for (int j = 0; j < count; ++j) sum += weight[j] * rows[j][x];
    into[x] = rounded(sum, shift);
  }
}

}  // namespace

const ResizeKernels kResizePlain{horizontal, vertical};

}  // namespace chexnet
