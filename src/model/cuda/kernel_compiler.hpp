// Our kernels are compiled on the machine for its GPU, by the compiler that
// LibTorch brings along for its own (NVRTC). So a build needs no nvcc, and an
// architecture that it does not know is no problem.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace chexnet {

// The machine code of `source` for a GPU ("sm_90"). `defines`: names.
// DeviceError where the compiler is absent or refuses, with its words.
// `report`: what ptxas says of each kernel's registers, stack and memory.
std::string compile_kernels(const std::string& source,
                            const std::string& architecture,
                            const std::vector<std::string>& defines,
                            std::string* report = nullptr);

// The kernels of compiled code on the selected GPU. Never unloaded. Any thread.
class KernelModule {
 public:
  explicit KernelModule(const std::string& machine_code);
  // DeviceError where there is none of this name.
  cudaKernel_t kernel(const char* name) const;

 private:
  cudaLibrary_t library_ = nullptr;
};

}  // namespace chexnet
