// Which GPUs there are and which library serves them. A file of its own,
// because the tests link another one in its place, whose GPUs are made up.
#include <dlfcn.h>

#include "chexnet/comm/cuda_library.hpp"

namespace chexnet {

const char* CudaLibrary::file_name() { return "libchexnet_cuda.so"; }

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

}  // namespace chexnet
