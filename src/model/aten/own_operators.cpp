#include "own_operators.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>

#include "operator_of.hpp"

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

constexpr size_t kVectorBytes = 16;

// --- by ATen's operators: the reference, and what the CPU computes

std::tuple<at::Tensor, at::Tensor> max_pool_by_aten(const at::Tensor& x) {
  return at::max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1});
}

// Of what was pooled, ATen's operators look at the shape alone.
at::Tensor shaped(at::IntArrayRef shape, at::MemoryFormat format,
                  const at::Tensor& dy) {
  return at::empty(shape, dy.options().memory_format(format));
}

at::Tensor max_pool_backward_by(at::MemoryFormat format, const at::Tensor& dy,
                                at::IntArrayRef shape,
                                const at::Tensor& indices) {
  return at::max_pool2d_with_indices_backward(dy, shaped(shape, format, dy),
                                              {3, 3}, {2, 2}, {1, 1}, {1, 1},
                                              false, indices);
}

at::Tensor max_pool_backward_by_aten(const at::Tensor& dy,
                                     at::IntArrayRef shape,
                                     const at::Tensor& indices) {
  return max_pool_backward_by(at::MemoryFormat::ChannelsLast, dy, shape,
                              indices);
}

at::Tensor average_pool_by_aten(const at::Tensor& x) {
  return at::avg_pool2d(x, {2, 2}, {2, 2});
}

at::Tensor average_pool_backward_by(at::MemoryFormat format,
                                    const at::Tensor& dy,
                                    at::IntArrayRef shape) {
  return at::avg_pool2d_backward(dy, shaped(shape, format, dy), {2, 2}, {2, 2},
                                 {0, 0}, false, true, c10::nullopt);
}

at::Tensor average_pool_backward_by_aten(const at::Tensor& dy,
                                         at::IntArrayRef shape) {
  return average_pool_backward_by(at::MemoryFormat::ChannelsLast, dy, shape);
}

at::Tensor relu_backward_by_aten(const at::Tensor& dy,
                                 const OptionalTensor& more,
                                 const at::Tensor& y) {
  return at::threshold_backward(more ? dy + *more : dy, y, 0);
}

// --- the dispatcher's

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

std::tuple<at::Tensor, at::Tensor> max_pool(const at::Tensor& x, bool kernels) {
  if (!kernels) return max_pool_by_aten(x);
  static const auto op = operator_of<max_pool_by_aten>("max_pool");
  return op.call(x);
}

at::Tensor max_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                             at::MemoryFormat format, const at::Tensor& chosen,
                             bool kernels) {
  if (!kernels) return max_pool_backward_by(format, dy, shape, chosen);
  static const auto op =
      operator_of<max_pool_backward_by_aten>("max_pool_backward");
  return op.call(dense(dy), shape, chosen);
}

at::Tensor average_pool(const at::Tensor& x, bool kernels) {
  if (!kernels) return average_pool_by_aten(x);
  static const auto op = operator_of<average_pool_by_aten>("average_pool");
  return op.call(x);
}

at::Tensor average_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                                 at::MemoryFormat format, bool kernels) {
  if (!kernels) return average_pool_backward_by(format, dy, shape);
  static const auto op =
      operator_of<average_pool_backward_by_aten>("average_pool_backward");
  return op.call(dense(dy), shape);
}

at::Tensor relu_gradient(const at::Tensor& dy, const OptionalTensor& more,
                         const at::Tensor& y, bool kernels) {
  if (!kernels) return relu_backward_by_aten(dy, more, y);
  static const auto op = operator_of<relu_backward_by_aten>("relu_backward");
  return op.call(dense(dy), more, y);
}

}  // namespace chexnet

TORCH_LIBRARY(chexnet, library) {
  library.def("max_pool(Tensor x) -> (Tensor, Tensor)");
  library.def(
      "max_pool_backward(Tensor dy, int[] shape, Tensor chosen) -> Tensor");
  library.def("average_pool(Tensor x) -> Tensor");
  library.def("average_pool_backward(Tensor dy, int[] shape) -> Tensor");
  library.def("relu_backward(Tensor dy, Tensor? more, Tensor y) -> Tensor");
}

TORCH_LIBRARY_IMPL(chexnet, CPU, library) {
  library.impl("max_pool", chexnet::max_pool_by_aten);
  library.impl("max_pool_backward", chexnet::max_pool_backward_by_aten);
  library.impl("average_pool", chexnet::average_pool_by_aten);
  library.impl("average_pool_backward", chexnet::average_pool_backward_by_aten);
  library.impl("relu_backward", chexnet::relu_backward_by_aten);
}
