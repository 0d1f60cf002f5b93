#include "sets.hpp"
#include "table.hpp"

namespace chexnet {

void avx512_kernels(KernelSet& set) {
  set = {make_kernels<float, false>("avx512"), make_kernels<Bf16, false>("avx512"),
         make_kernels<double, false>("avx512")};
}

}  // namespace chexnet
