// What the real communicator asks of the fake GPU's kernels.
#pragma once

#include "model/cuda/nccl_communicator.hpp"

namespace fake_gpu {

chexnet::DeviceFunctions device_functions();

}  // namespace fake_gpu
