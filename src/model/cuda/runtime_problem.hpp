// What the CUDA runtime says of the driver and its GPUs.
#pragma once

#include "chexnet/launch/machine/gpu_access.hpp"

namespace chexnet {

// Why the CUDA runtime cannot use a GPU here; empty where it can use one.
GpuProblem runtime_problem();

}  // namespace chexnet
