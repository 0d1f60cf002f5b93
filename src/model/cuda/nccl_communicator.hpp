// The communicator whose gradients are on a GPU and travel over NCCL. Sees no
// LibTorch, so that it also runs on a fake CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

// Functions that the communicator needs of the library whose kernels compute.
struct DeviceFunctions {
  // The CUDA stream that forward, backward and optimizer use just now.
  std::function<cudaStream_t()> compute_stream;
  // Device memory that only work of `stream` touches; DeviceError where there
  // is none.
  std::function<void*(size_t bytes, cudaStream_t stream)> allocate;
  std::function<void(void* memory)> release;
  // Puts on `stream`: `count` fp32 values times `scale` become 16-bit floats of
  // the format, and back, times nothing.
  std::function<void(const float* from, void* to, size_t count, float scale,
                     GradientCompression format, cudaStream_t stream)>
      pack;
  std::function<void(const void* from, float* to, size_t count,
                     GradientCompression format, cudaStream_t stream)>
      unpack;
};

// Collective. Gradients on GPU `device` of this process, which is selected; the
// control plane through `host`. One rank needs no NCCL and starts none. A start
// that does not end within `timeout_s` is a HangError; so is work that NCCL or
// the GPU does not finish, each with its own text.
std::unique_ptr<Communicator> make_nccl_communicator(
    std::unique_ptr<Communicator> host, int device, double timeout_s,
    DeviceFunctions functions);

}  // namespace chexnet
