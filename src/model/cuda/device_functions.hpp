// LibTorch's CUDA streams, memory and kernels, for the communicator.
#pragma once

#include "nccl_communicator.hpp"

namespace chexnet {

DeviceFunctions device_functions(int device);

}  // namespace chexnet
