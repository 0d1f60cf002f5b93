#include "sets.hpp"
#include "table.hpp"

namespace chexnet {

void avx2_kernels(KernelSet& set) {
  set = {make_kernels<float, false>("avx2"), make_kernels<Bf16, false>("avx2"),
         make_kernels<double, false>("avx2")};
}

}  // namespace chexnet
