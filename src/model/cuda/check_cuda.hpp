// An error of the CUDA runtime as an exception.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>

#include "chexnet/core/error.hpp"

namespace chexnet {

inline void check_cuda(
    cudaError_t rc, std::source_location at = std::source_location::current()) {
  if (rc == cudaSuccess) return;
  throw DeviceError(
      "[cuda] {} ({}). Hint: nvidia-smi shows the GPU's state; dmesg shows Xid "
      "errors",
      cudaGetErrorString(rc), at.function_name());
}

}  // namespace chexnet
