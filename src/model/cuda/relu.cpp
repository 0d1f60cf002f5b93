// ReLU's gradient of model/aten/own_operators.hpp on CUDA.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>

#include "own_kernels.hpp"

namespace chexnet {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kBlocks = 16;  // of a multiprocessor at most

// One thread for each vector, or several one after the other.
at::Tensor relu_backward(const at::Tensor& dy,
                         const std::optional<at::Tensor>& residual,
                         const at::Tensor& y) {
  require_vectors(dy, "a gradient");
  if (residual) require_vectors(*residual, "a shortcut's gradient");
  require_vectors(y, "a map");
  at::Tensor dx = at::empty_like(y);
  const int64_t count = static_cast<int64_t>(dx.nbytes()) / kVectorBytes;
  TORCH_CHECK(count <= std::numeric_limits<int>::max(),
              "our kernels take maps of less than 2^31 vectors");
  const int64_t blocks =
      std::min((count + kThreads - 1) / kThreads, kBlocks * multiprocessors());
  launch(kReluKernels, kReluBackward, dx.scalar_type(),
         dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
         dy.const_data_ptr(), residual ? residual->const_data_ptr() : nullptr,
         y.const_data_ptr(), static_cast<unsigned>(count),
         dx.mutable_data_ptr());
  return dx;
}

}  // namespace
}  // namespace chexnet

TORCH_LIBRARY_IMPL(chexnet, CUDA, library) {
  library.impl("relu_backward", chexnet::relu_backward);
}
