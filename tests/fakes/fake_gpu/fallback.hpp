// Every operator without an entry here runs on the CPU's implementation, as a
// kernel on the current stream.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

#include "fakes/fake_gpu/device.hpp"

namespace fake_gpu {

// A boxed kernel; arguments and results are on the stack.
void run_as_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Its memory grows where it must; what was in it stays.
void resize_tensor(const at::Tensor& tensor, at::IntArrayRef sizes,
                   std::optional<at::MemoryFormat> memory_format);

// A line of the file FAKE_GPU_TRAFFIC, which is made anew: the bytes that a
// kernel reads and writes, those that tensors hold then, and its name.
void note_traffic(const std::string& name, size_t bytes);

// A tensor as a kernel sees it: it owns nothing, like the pointers that a CUDA
// kernel is given.
struct TensorView {
  explicit TensorView(const at::Tensor& tensor);
  // On the CPU, over the memory of kernels. For threads of streams only.
  at::Tensor for_kernel() const;
  size_t own_bytes() const;  // without the gaps between elements
  RaceDetector::Range range(Use use) const { return {data, bytes, use}; }

  void* data = nullptr;
  size_t bytes = 0;  // from the first element to the last
  std::vector<int64_t> sizes, strides;
  at::ScalarType type;
};

}  // namespace fake_gpu
