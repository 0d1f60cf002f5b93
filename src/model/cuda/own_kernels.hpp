// Our kernels on the selected GPU, by name and type of elements. They are
// compiled when the first of a source is needed (half a second).
#pragma once

#include <ATen/core/Tensor.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "check_cuda.hpp"
#include "kernel_signatures.hpp"

namespace chexnet {

extern const char* const kKernelArguments;   // kernel_arguments.hpp
extern const char* const kVectorKernels;     // kernels/vectors.cu
extern const char* const kBatchNormKernels;  // kernels/batch_norm{,_pool}.cu
extern const char* const kMomentKernels;     // kernels/moments.cu
extern const char* const kReluKernels;       // kernels/relu.cu

constexpr int64_t kVectorBytes = 16;  // bytes that a thread reads at once

// `source`: one of the last three. Any thread; never unloaded.
// DeviceError where it cannot be compiled.
cudaKernel_t own_kernel(const char* source, const char* name,
                        at::ScalarType type);

// The error of own_kernel() on the selected GPU; "" where it can compile.
std::string kernels_problem();

// Of the thread: its GPU, and what that has.
int selected_gpu();
int64_t multiprocessors();
cudaStream_t current_stream();

// Channels-last, from an address that vectors may be read from; else an error
// that names `what`.
void require_vectors(const at::Tensor& map, const char* what);

// The kernel of `source`, for maps of `type`, on the current CUDA stream.
template <class... Parameters>
void launch(const char* source, const Kernel<void(Parameters...)>& kernel,
            at::ScalarType type, dim3 blocks, dim3 threads,
            std::type_identity_t<Parameters>... arguments) {
  void* places[] = {&arguments...};
  check_cuda(cudaLaunchKernel(
      reinterpret_cast<const void*>(own_kernel(source, kernel.name, type)),
      blocks, threads, places, 0, current_stream()));
}

}  // namespace chexnet
