// The kernels of the fake GPU that the real communicator uses.
#pragma once

#include "model/cuda/nccl_communicator.hpp"

namespace fake_gpu {

chexnet::DeviceFunctions device_functions();

}  // namespace fake_gpu
