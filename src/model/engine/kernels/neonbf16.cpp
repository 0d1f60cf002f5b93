// Only bf16 differs from the generic set, which is NEON on AArch64: its
// multiply-adds (BFDOT) take two values at a time.
#include "kernel_table.hpp"

namespace chexnet {

void neonbf16_kernels(KernelSet& set) {
  set.bf16 = make_kernels<Bf16, true>("neonbf16");
}

}  // namespace chexnet
