// Only bf16 differs from avx512: its multiply-adds take two values at a time.
#include "kernel_table.hpp"

namespace chexnet {

void avx512bf16_kernels(KernelSet& set) {
  set.bf16 = make_kernels<Bf16, true>("avx512bf16");
}

}  // namespace chexnet
