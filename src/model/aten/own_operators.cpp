#include "own_operators.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

constexpr size_t kVectorBytes = 16;

at::Tensor relu_backward_by_aten(const at::Tensor& dy,
                                 const OptionalTensor& residual,
                                 const at::Tensor& y) {
  return at::threshold_backward(residual ? dy + *residual : dy, y, 0);
}

// ATen's operators use only the shape of the pooled map's input.
at::Tensor shaped(at::IntArrayRef shape, at::MemoryFormat format,
                  const at::Tensor& dy) {
  return at::empty(shape, dy.options().memory_format(format));
}

}  // namespace

at::Tensor dense(const at::Tensor& dy) {
  return dy.contiguous(at::MemoryFormat::ChannelsLast);
}

void add_and_cut(at::Tensor& y, const OptionalTensor& shortcut, bool relu) {
  if (shortcut) y.add_(*shortcut);
  if (relu) y.relu_();
}

bool own_kernels_take(const at::Tensor& x, int64_t most_channels) {
  const auto type = x.scalar_type();
  const auto pixels = static_cast<size_t>(x.numel() / x.size(1));
  const auto most = static_cast<size_t>(std::max(x.size(1), most_channels));
  return !x.is_cpu() &&
         (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         static_cast<size_t>(x.size(1)) * x.element_size() % kVectorBytes ==
             0 &&
         pixels * most * x.element_size() / kVectorBytes <=
             std::numeric_limits<int32_t>::max();
}

std::tuple<at::Tensor, at::Tensor> max_pool(const at::Tensor& x) {
  return at::max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1});
}

at::Tensor max_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                             at::MemoryFormat format,
                             const at::Tensor& indices) {
  return at::max_pool2d_with_indices_backward(dy, shaped(shape, format, dy),
                                              {3, 3}, {2, 2}, {1, 1}, {1, 1},
                                              false, indices);
}

at::Tensor average_pool(const at::Tensor& x) {
  return at::avg_pool2d(x, {2, 2}, {2, 2});
}

at::Tensor average_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                                 at::MemoryFormat format) {
  return at::avg_pool2d_backward(dy, shaped(shape, format, dy), {2, 2}, {2, 2},
                                 {0, 0}, false, true, c10::nullopt);
}

at::Tensor relu_gradient(const at::Tensor& dy, const OptionalTensor& residual,
                         const at::Tensor& y, bool kernels) {
  return compute<relu_backward_by_aten>("relu_backward", kernels,
                                        kernels ? dense(dy) : dy, residual, y);
}

}  // namespace chexnet

TORCH_LIBRARY(chexnet, library) {
  library.def("relu_backward(Tensor dy, Tensor? residual, Tensor y) -> Tensor");
}

TORCH_LIBRARY_IMPL(chexnet, CPU, library) {
  library.impl("relu_backward", chexnet::relu_backward_by_aten);
}
