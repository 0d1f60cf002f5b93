// The kernels of table.hpp for SVE with registers of 256 bits, 8 floats each,
// and dot products of bf16 pairs (Neoverse V1).
#include "kernel_table.hpp"

namespace chexnet {

void sve256_kernels(KernelSet& set) {
  set = make_set("sve256");
  set.bf16 = make_kernels<Bf16, true>("sve256");
}

}  // namespace chexnet
