#include "chexnet/comm/cuda_library.hpp"

#include <dlfcn.h>

#include "chexnet/launch/plugin.hpp"

namespace chexnet {
namespace {

// Asks the driver alone: loading LibTorch's CUDA side costs 0.4 s and 560 MB.
bool driver_sees_a_gpu() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&devices) == 0 && devices > 0;
}

}  // namespace

CudaLibrary* CudaLibrary::open_if_present() {
  static CudaLibrary* const library = []() -> CudaLibrary* {
    if (!driver_sees_a_gpu() || !Plugin::exists("libchexnet_cuda.so")) return nullptr;
    static const Plugin plugin("libchexnet_cuda.so");
    return reinterpret_cast<CudaLibrary* (*)()>(plugin.symbol("chexnet_cuda_library"))();
  }();
  return library;
}

}  // namespace chexnet
