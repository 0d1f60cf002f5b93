#include "table.hpp"

namespace chexnet {

void avx2_kernels(KernelSet& set) { set = make_set("avx2"); }

}  // namespace chexnet
