// The kernels of table.hpp for 16 floats a register.
#include "kernel_table.hpp"

namespace chexnet {

void avx512_kernels(KernelSet& set) { set = make_set("avx512"); }

}  // namespace chexnet
