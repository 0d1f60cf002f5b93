#include "chexnet/comm/cuda_library.hpp"

#include <dlfcn.h>

#include "chexnet/launch/plugin.hpp"

namespace chexnet {

// Loading LibTorch's CUDA side would cost 0.4 s and 560 MB.
int CudaLibrary::visible_gpus() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 0;
  const auto init =
      reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count =
      reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  const bool good = init != nullptr && count != nullptr && init(0) == 0 &&
                    count(&devices) == 0;
  return good ? devices : 0;
}

CudaLibrary* CudaLibrary::open_if_present() {
  static CudaLibrary* const library = []() -> CudaLibrary* {
    if (visible_gpus() == 0 || !Plugin::exists("libchexnet_cuda.so"))
      return nullptr;
    static const Plugin plugin("libchexnet_cuda.so");
    return reinterpret_cast<CudaLibrary* (*)()>(
        plugin.symbol("chexnet_cuda_library"))();
  }();
  return library;
}

}  // namespace chexnet
