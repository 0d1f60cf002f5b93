#include "sets.hpp"
#include "table.hpp"

namespace chexnet {

void generic_kernels(KernelSet& set) {
  set = {make_kernels<float, false>("generic"), make_kernels<Bf16, false>("generic"),
         make_kernels<double, false>("generic")};
}

}  // namespace chexnet
