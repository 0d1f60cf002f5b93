// Dynamic loss scaling for fp16 (Micikevicius et al., ICLR 2018; PyTorch's
// GradScaler constants): halved when a gradient overflowed, doubled after 2,000
// good steps.
#pragma once

#include <cstdint>

namespace chexnet {

struct LossScale {
  double value = 1;  // 65536 to start with for fp16, 1 and fixed otherwise
  int64_t good = 0;  // steps since the last change
  bool dynamic = false;

  static LossScale for_fp16() { return {65536, 0, true}; }
};

}  // namespace chexnet
