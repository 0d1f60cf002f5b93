#include "own_kernels.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "chexnet/core/error.hpp"
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

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, selected_gpu()));
  return value;
}

KernelModule compiled(const char* source, at::ScalarType type) {
  const std::string gpu =
      std::to_string(attribute(cudaDevAttrComputeCapabilityMajor)) +
      std::to_string(attribute(cudaDevAttrComputeCapabilityMinor));
  const std::string text = std::string(kKernelArguments) + kVectorKernels;
  return KernelModule(
      compile_kernels(text + source, "sm_" + gpu, {element_of(type)}));
}

}  // namespace

cudaKernel_t own_kernel(const char* source, const char* name,
                        at::ScalarType type) {
  using ModuleKey = std::tuple<const char*, at::ScalarType, int>;
  static std::mutex mutex;
  static std::map<ModuleKey, KernelModule> modules;
  static std::map<std::pair<const char*, ModuleKey>, cudaKernel_t> kernels;
  const std::scoped_lock lock(mutex);
  const ModuleKey key(source, type, selected_gpu());
  auto& kernel = kernels[{name, key}];
  if (kernel == nullptr) {
    auto module = modules.find(key);
    if (module == modules.end())
      module = modules.emplace(key, compiled(source, type)).first;
    kernel = module->second.kernel(name);
  }
  return kernel;
}

std::string kernels_problem() {
  try {
    own_kernel(kReluKernels, "relu_backward", at::kFloat);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

int selected_gpu() { return static_cast<int>(c10::cuda::current_device()); }

int64_t multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

cudaStream_t current_stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
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
