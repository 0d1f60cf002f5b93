// Links the CUDA runtime alone, so that it can be tested where the rest of
// CUDA's libraries is not installed.
#include "runtime_problem.hpp"

#include <cuda_runtime_api.h>

#include <string>

namespace chexnet {
namespace {

std::string remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "a newer driver, or variant cuda12: scripts/setup --gpu --cuda "
             "cuda12";
    case cudaErrorNoDevice:
      return "CUDA_VISIBLE_DEVICES, the batch system, the container's --nv";
    case cudaErrorDevicesUnavailable:
      return "nvidia-smi shows who uses the GPU; its compute mode may be "
             "exclusive";
    default:
      return "nvidia-smi shows the GPU's state; dmesg shows Xid errors";
  }
}

}  // namespace

GpuProblem runtime_problem() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return {};
  if (error == cudaSuccess) error = cudaErrorNoDevice;
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  return {"the CUDA runtime " + cuda_version_text(runtime) +
              " cannot use the driver's GPUs: " + cudaGetErrorString(error) +
              " (" + cudaGetErrorName(error) + ", the driver serves CUDA " +
              cuda_version_text(driver) + ")",
          remedy(error) + kOrOnCpu};
}

}  // namespace chexnet
