// The memory comes from LibTorch's allocator, which returns it to the CUDA
// stream that it was taken for: work there may still use it after its release,
// and LibTorch keeps no large part of the GPU away from it.
#include "device_functions.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace chexnet {
namespace {

at::Tensor vector_at(const void* values, size_t count, at::ScalarType type,
                     c10::DeviceIndex device) {
  return at::from_blob(
      const_cast<void*>(values), {static_cast<int64_t>(count)},
      at::TensorOptions().dtype(type).device(at::kCUDA, device));
}

at::ScalarType type_of(GradientCompression format) {
  return format == GradientCompression::kBf16 ? at::kBFloat16 : at::kHalf;
}

}  // namespace

DeviceFunctions device_functions(int device) {
  namespace Allocator = c10::cuda::CUDACachingAllocator;
  const auto index = static_cast<c10::DeviceIndex>(device);
  DeviceFunctions functions;
  functions.compute_stream = [index] {
    return c10::cuda::getCurrentCUDAStream(index).stream();
  };
  functions.allocate = [](size_t bytes, cudaStream_t stream) {
    return Allocator::raw_alloc_with_stream(bytes, stream);
  };
  functions.release = [](void* memory) { Allocator::raw_delete(memory); };
  functions.pack = [index](const float* from, void* to, size_t count,
                           float scale, GradientCompression format,
                           cudaStream_t stream) {
    const c10::cuda::CUDAStreamGuard guard(
        c10::cuda::getStreamFromExternal(stream, index));
    at::Tensor halves = vector_at(to, count, type_of(format), index);
    at::mul_out(halves, vector_at(from, count, at::kFloat, index),
                at::scalar_tensor(scale));
  };
  functions.unpack = [index](const void* from, float* to, size_t count,
                             GradientCompression format, cudaStream_t stream) {
    const c10::cuda::CUDAStreamGuard guard(
        c10::cuda::getStreamFromExternal(stream, index));
    vector_at(to, count, at::kFloat, index)
        .copy_(vector_at(from, count, type_of(format), index));
  };
  return functions;
}

}  // namespace chexnet
