// Pooling and ReLU's gradient of model/aten/own_operators.hpp on CUDA.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>

#include "own_kernels.hpp"

namespace chexnet {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kBlocks = 16;  // of a multiprocessor at most

int64_t vectors_of(const at::Tensor& map) {
  return static_cast<int64_t>(map.nbytes()) / kVectorBytes;
}

PooledShape shape_of(const at::Tensor& map) {
  return {static_cast<int>(map.size(2)), static_cast<int>(map.size(3)),
          static_cast<int>(vectors_of(map) /
                           (map.size(0) * map.size(2) * map.size(3)))};
}

at::Tensor empty_map(at::IntArrayRef shape, const at::Tensor& like) {
  return at::empty(
      shape, like.options().memory_format(at::MemoryFormat::ChannelsLast));
}

// One thread for each vector of `result`, or several one after the other.
template <class... Parameters>
void launch_over(const at::Tensor& result,
                 const Kernel<void(Parameters...)>& kernel,
                 std::type_identity_t<Parameters>... arguments) {
  const int64_t count = vectors_of(result);
  TORCH_CHECK(count <= std::numeric_limits<int>::max(),
              "our kernels take maps of at most 2^31 vectors");
  const int64_t blocks =
      std::min((count + kThreads - 1) / kThreads, kBlocks * multiprocessors());
  launch(kPoolKernels, kernel, result.scalar_type(),
         dim3(static_cast<unsigned>(blocks)), dim3(kThreads), arguments...);
}

unsigned count_of(const at::Tensor& map) {
  return static_cast<unsigned>(vectors_of(map));
}

std::tuple<at::Tensor, at::Tensor> max_pool(const at::Tensor& x) {
  require_vectors(x, "a map that is pooled");
  at::Tensor y = empty_map(
      {x.size(0), x.size(1), (x.size(2) + 1) / 2, (x.size(3) + 1) / 2}, x);
  at::Tensor taps = at::empty_like(y, y.options().dtype(at::kByte));
  launch_over(y, kMaxPoolForward, x.const_data_ptr(), shape_of(x), shape_of(y),
              count_of(y), y.mutable_data_ptr(), taps.mutable_data_ptr());
  return {y, taps};
}

at::Tensor max_pool_backward(const at::Tensor& dy, at::IntArrayRef shape,
                             const at::Tensor& taps) {
  require_vectors(dy, "a pooled map's gradient");
  at::Tensor dx = empty_map(shape, dy);
  launch_over(dx, kMaxPoolBackward, dy.const_data_ptr(), taps.const_data_ptr(),
              shape_of(dx), shape_of(dy), count_of(dx), dx.mutable_data_ptr());
  return dx;
}

at::Tensor average_pool(const at::Tensor& x) {
  require_vectors(x, "a map that is pooled");
  at::Tensor y =
      empty_map({x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2}, x);
  launch_over(y, kAveragePoolForward, x.const_data_ptr(), shape_of(x),
              shape_of(y), count_of(y), y.mutable_data_ptr());
  return y;
}

at::Tensor average_pool_backward(const at::Tensor& dy, at::IntArrayRef shape) {
  require_vectors(dy, "a pooled map's gradient");
  at::Tensor dx = empty_map(shape, dy);
  launch_over(dx, kAveragePoolBackward, dy.const_data_ptr(), shape_of(dx),
              shape_of(dy), count_of(dx), dx.mutable_data_ptr());
  return dx;
}

at::Tensor relu_backward(const at::Tensor& dy,
                         const std::optional<at::Tensor>& more,
                         const at::Tensor& y) {
  require_vectors(dy, "a gradient");
  if (more) require_vectors(*more, "a shortcut's gradient");
  require_vectors(y, "a map");
  at::Tensor dx = at::empty_like(y);
  launch_over(dx, kReluBackward, dy.const_data_ptr(),
              more ? more->const_data_ptr() : nullptr, y.const_data_ptr(),
              count_of(dx), dx.mutable_data_ptr());
  return dx;
}

}  // namespace
}  // namespace chexnet

TORCH_LIBRARY_IMPL(chexnet, CUDA, library) {
  library.impl("max_pool", chexnet::max_pool);
  library.impl("max_pool_backward", chexnet::max_pool_backward);
  library.impl("average_pool", chexnet::average_pool);
  library.impl("average_pool_backward", chexnet::average_pool_backward);
  library.impl("relu_backward", chexnet::relu_backward);
}
