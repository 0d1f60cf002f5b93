#include "own_kernels.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "kernel_compiler.hpp"

namespace chexnet {
namespace {

const char* element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "ELEMENT_FP32";
    case at::kHalf:
      return "ELEMENT_FP16";
    case at::kBFloat16:
      return "ELEMENT_BF16";
    default:
      TORCH_CHECK(false, "no kernels for elements of type ", type);
  }
}

KernelModule compiled(const char* source, at::ScalarType type) {
  const cudaDeviceProp& gpu = *at::cuda::getCurrentDeviceProperties();
  return KernelModule(compile_kernels(
      std::string(kVectorKernels) + source,
      "sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor),
      {element_of(type)}));
}

}  // namespace

cudaKernel_t own_kernel(const char* source, const char* name,
                        at::ScalarType type) {
  using ModuleKey = std::tuple<const char*, at::ScalarType, int>;
  static std::mutex mutex;
  static std::map<ModuleKey, KernelModule> modules;
  static std::map<std::pair<const char*, ModuleKey>, cudaKernel_t> kernels;
  const std::scoped_lock lock(mutex);
  const ModuleKey key(source, type,
                      static_cast<int>(at::cuda::current_device()));
  auto& kernel = kernels[{name, key}];
  if (kernel == nullptr) {
    auto module = modules.find(key);
    if (module == modules.end())
      module = modules.emplace(key, compiled(source, type)).first;
    kernel = module->second.kernel(name);
  }
  return kernel;
}

int64_t multiprocessors() {
  return at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
}

cudaStream_t current_stream() {
  return at::cuda::getCurrentCUDAStream().stream();
}

void require_vectors(const at::Tensor& map, const char* what) {
  TORCH_CHECK(
      map.is_contiguous(at::MemoryFormat::ChannelsLast) &&
          reinterpret_cast<uintptr_t>(map.const_data_ptr()) % kVectorBytes == 0,
      "our kernels take channels-last maps that begin at 16 bytes, "
      "which ",
      what, " is not");
}

}  // namespace chexnet
