// Our kernels of GPUs as operators of LibTorch's dispatcher: profilers and
// audits see them, and each kind of device may bring kernels.
// libchexnet_cuda.so brings those of src/model/cuda/kernels. On the CPU, and
// where `kernels` is false, they are ATen's operators one after the other.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

namespace chexnet {

// The operator of this name, with the signature of kByAten, which computes it
// by ATen's operators; without `kernels` kByAten itself.
template <auto kByAten, class... Arguments>
auto compute(const char* name, bool kernels, Arguments&&... arguments) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow((std::string("chexnet::") + name).c_str(), "")
          .typed<std::remove_pointer_t<decltype(kByAten)>>();
  return kernels ? op.call(arguments...) : kByAten(arguments...);
}

// Whether our kernels take such a map on its device: channels-last, in fp32,
// fp16 or bf16, pixels of whole 16 bytes, less than 32 GiB, also when it grows
// to `most_channels`.
bool own_kernels_take(const at::Tensor& x, int64_t most_channels = 0);

// As our kernels take gradients: channels-last, a copy where it is not.
at::Tensor dense(const at::Tensor& dy);

// y += shortcut, then ReLU, in place and by ATen's operators.
void add_and_cut(at::Tensor& y, const std::optional<at::Tensor>& shortcut,
                 bool relu);

// By ATen's operators; our kernels pool in the pass of BatchNorm. `shape` and
// `format` are x's: a gradient of one pixel does not tell them.
//
// Windows of 3x3, two apart, one pixel beyond each edge. Which pixel of x's
// plane each value is goes back with the gradient.
std::tuple<at::Tensor, at::Tensor> max_pool(const at::Tensor& x);
at::Tensor max_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                             at::MemoryFormat format,
                             const at::Tensor& indices);

// Windows of 2x2, two apart.
at::Tensor average_pool(const at::Tensor& x);
at::Tensor average_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                                 at::MemoryFormat format);

// dy (+ residual) where y > 0, else 0.
at::Tensor relu_gradient(const at::Tensor& dy,
                         const std::optional<at::Tensor>& residual,
                         const at::Tensor& y, bool kernels);

}  // namespace chexnet
