// The kernels of table.hpp for any processor, with the instructions that its
// ABI promises.
#include "kernel_table.hpp"

namespace chexnet {

void generic_kernels(KernelSet& set) { set = make_set("generic"); }

}  // namespace chexnet
