#include "table.hpp"

namespace chexnet {

void generic_kernels(KernelSet& set) { set = make_set("generic"); }

}  // namespace chexnet
