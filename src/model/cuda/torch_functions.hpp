// LibTorch's streams, memory and kernels, for the communicator.
#pragma once

#include "nccl_communicator.hpp"

namespace chexnet {

DeviceFunctions torch_functions(int device);

}  // namespace chexnet
