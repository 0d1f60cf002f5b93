#include "chexnet/comm/cuda_library.hpp"

#include "chexnet/launch/plugin.hpp"

namespace chexnet {

CudaLibrary* CudaLibrary::open_if_present() {
  static CudaLibrary* const library = []() -> CudaLibrary* {
    if (visible_gpus() == 0 || !Plugin::exists(file_name())) return nullptr;
    static const Plugin plugin(file_name());
    return reinterpret_cast<CudaLibrary* (*)()>(
        plugin.symbol("chexnet_cuda_library"))();
  }();
  return library;
}

}  // namespace chexnet
