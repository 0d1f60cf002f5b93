// The kernels of table.hpp for 8 floats a register, with fused multiply-add.
#include "kernel_table.hpp"

namespace chexnet {

void avx2_kernels(KernelSet& set) { set = make_set("avx2"); }

}  // namespace chexnet
