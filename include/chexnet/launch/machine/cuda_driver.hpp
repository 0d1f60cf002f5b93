// What the CUDA driver (libcuda.so.1) says of the GPUs that it shows to this
// process. Needs no LibTorch, which costs 0.4 s and 560 MB to load, and takes
// no GPU memory. Prototypes: CUDA Driver API, NVIDIA, 11.0 and later.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

struct DriverGpu {
  std::string name;
  int major = 0, minor = 0;  // compute capability
};

struct CudaDriver {
  bool present = false;         // libcuda.so.1 can be opened
  int error = 0;                // a CUresult; "no device" is none, but no GPU
  std::string error_name;       // "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
  int version = 0;              // the newest CUDA it serves: 12020 is 12.2
  std::vector<DriverGpu> gpus;  // that it shows to this process
};

// Any thread. Threads that the driver starts here take no signals: those are
// for the threads of the program that wait for them.
CudaDriver ask_cuda_driver();

}  // namespace chexnet
