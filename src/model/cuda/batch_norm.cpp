// The operators of model/aten/batch_norm_operators.hpp on CUDA. Each CUDA
// stream has its counters of finished blocks, as two kernels at a time would
// mix them up.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "kernel_grid.hpp"
#include "own_kernels.hpp"

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using TwoTensors = std::tuple<at::Tensor, at::Tensor>;

// For each multiprocessor: the fastest on an H200 (docs/gpu.md).
constexpr int64_t kReducingBlocks = 1, kMappingBlocks = 2;

// A kernel over the rows of x.
template <class... Parameters>
void launch_on(const Kernel<void(Parameters...)>& kernel, const at::Tensor& x,
               const KernelGrid& grid,
               std::type_identity_t<Parameters>... arguments) {
  launch(kBatchNormKernels, kernel, x.scalar_type(),
         dim3(grid.channel_blocks, grid.row_blocks),
         dim3(grid.block_vectors, grid.block_rows), arguments...);
}

// Vectors from one pixel of a channels-last map to the next, which may be some
// channels of a wider map. Strides of a dimension of size 1 say nothing.
long long vectors_apart(const at::Tensor& map) {
  int64_t apart = map.size(1), pixels = 1;
  bool first = true, dense = map.stride(1) == 1;
  for (const int dimension : {3, 2, 0}) {
    if (map.size(dimension) == 1) continue;
    if (std::exchange(first, false)) apart = map.stride(dimension);
    dense = dense && map.stride(dimension) == pixels * apart;
    pixels *= map.size(dimension);
  }
  const int64_t bytes = apart * static_cast<int64_t>(map.element_size());
  TORCH_CHECK(
      dense && bytes % kVectorBytes == 0 &&
          reinterpret_cast<uintptr_t>(map.const_data_ptr()) % kVectorBytes == 0,
      "BatchNorm's kernels take channels-last maps whose pixels begin at 16 "
      "bytes");
  return bytes / kVectorBytes;
}

ReadRows rows_read(const at::Tensor& map) {
  return {map.const_data_ptr(), vectors_apart(map)};
}
WrittenRows rows_of(const at::Tensor& map) {
  return {map.mutable_data_ptr(), vectors_apart(map)};
}

// A map as the kernels see it.
struct Map {
  explicit Map(const at::Tensor& x) : Map(x, x.numel() / x.size(1)) {}
  // Its threads take `of_threads` of what is not rows.
  Map(const at::Tensor& x, int64_t of_threads)
      : rows(of_threads),
        vectors(static_cast<int>(x.size(1) *
                                 static_cast<int64_t>(x.element_size()) /
                                 kVectorBytes)) {
    TORCH_CHECK(rows * vectors <= std::numeric_limits<int>::max(),
                "our kernels take maps of less than 2^31 vectors");
  }
  KernelGrid grid(int64_t threads, int64_t blocks) const {
    return kernel_grid(rows, vectors, threads, blocks * multiprocessors());
  }
  KernelGrid reducing() const {
    return grid(kReducingThreads, kReducingBlocks);
  }
  KernelGrid mapping() const { return grid(kMappingThreads, kMappingBlocks); }
  long long rows;
  int vectors;
};

PoolShape pool_shape(const at::Tensor& x, const at::Tensor& pooled) {
  const auto size = [](const at::Tensor& map, int dimension) {
    return static_cast<int>(map.size(dimension));
  };
  return {size(x, 0), size(x, 2), size(x, 3), size(pooled, 2), size(pooled, 3)};
}

// By tiles of 2x2 pixels, as the gradients of pooled maps are computed.
Map tiles_of(const at::Tensor& x) {
  return {x, x.size(0) * ((x.size(2) + 1) / 2) * ((x.size(3) + 1) / 2)};
}

// Memory for PartialSums.
struct Partial {
  at::Tensor sums, arrived;
  PartialSums for_kernel() {
    return {sums.mutable_data_ptr<float>(),
            reinterpret_cast<unsigned*>(arrived.mutable_data_ptr<int>())};
  }
};

Partial partial_of(const KernelGrid& grid, const at::Tensor& x) {
  static std::mutex mutex;
  // Kept for good: at the end of the process CUDA is gone before they are.
  static auto& counters =
      *new std::map<std::pair<int, cudaStream_t>, at::Tensor>;
  const auto options = x.options().memory_format(c10::nullopt);
  Partial partial;
  partial.sums =
      at::empty({grid.row_blocks, grid.channel_blocks, grid.block_vectors,
                 2 * kVectorBytes / static_cast<int64_t>(x.element_size())},
                options.dtype(at::kFloat));
  const std::scoped_lock lock(mutex);
  at::Tensor& own = counters[{selected_gpu(), current_stream()}];
  if (!own.defined() || own.numel() < grid.channel_blocks)
    own = at::zeros({std::max<int64_t>(grid.channel_blocks, 256)},
                    options.dtype(at::kInt));
  partial.arrived = own;
  return partial;
}

// Of channels, which the kernels read by vectors.
const float* floats(const at::Tensor& t) {
  const auto* const values = t.const_data_ptr<float>();
  TORCH_CHECK(reinterpret_cast<uintptr_t>(values) % kVectorBytes == 0,
              "BatchNorm's kernels take parameters that begin at 16 bytes");
  return values;
}
float* floats_of(at::Tensor& t) { return t.mutable_data_ptr<float>(); }

// [1], of the device; null where there is none.
const float* number(const OptionalTensor& t) {
  return t ? t->const_data_ptr<float>() : nullptr;
}

at::Tensor empty_map(at::IntArrayRef shape, const at::Tensor& like) {
  return at::empty(
      shape, like.options().memory_format(at::MemoryFormat::ChannelsLast));
}
at::Tensor channels_last_like(const at::Tensor& x) {
  return empty_map(x.sizes(), x);
}

at::Tensor per_channel(const at::Tensor& x) {
  return at::empty({x.size(1)},
                   x.options()
                       .dtype(at::kFloat)
                       .memory_format(at::MemoryFormat::Contiguous));
}

BatchNormArguments arguments(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, const at::Tensor& mean,
                             const at::Tensor& var, double epsilon, bool relu) {
  const Map map(x);
  return {x.const_data_ptr(),    vectors_apart(x), map.rows,
          map.vectors,           floats(mean),     floats(var),
          floats(weight),        floats(bias),     static_cast<float>(epsilon),
          static_cast<int>(relu)};
}

KeptChannels kept_channels(const OptionalTensor& mean,
                           const OptionalTensor& var, double share,
                           const OptionalTensor& pixels) {
  if (!mean) return {};
  return {mean->mutable_data_ptr<float>(), var->mutable_data_ptr<float>(),
          static_cast<float>(share), number(pixels)};
}

// To mean and var, or to `moments`.
void launch_statistics(const at::Tensor& x, const OptionalTensor& copy,
                       float* mean, float* var, double* moments) {
  require_vectors(x, "a map of new channels");
  const Map map(x);
  const KernelGrid grid = map.reducing();
  Partial partial = partial_of(grid, x);
  launch_on(kBatchNormStatistics, x, grid, x.const_data_ptr(), map.rows,
            map.vectors, copy ? rows_of(*copy) : WrittenRows{},
            partial.for_kernel(), mean, var, moments);
}

void statistics(const at::Tensor& x, const OptionalTensor& copy,
                at::Tensor& mean, at::Tensor& var) {
  launch_statistics(x, copy, floats_of(mean), floats_of(var), nullptr);
}

at::Tensor moments(const at::Tensor& x, const OptionalTensor& copy) {
  at::Tensor own = at::empty({2 * x.size(1) + 1},
                             x.options()
                                 .dtype(at::kDouble)
                                 .memory_format(at::MemoryFormat::Contiguous));
  launch_statistics(x, copy, nullptr, nullptr, own.mutable_data_ptr<double>());
  return own;
}

void merge(const at::Tensor& all, at::Tensor& mean, at::Tensor& var,
           at::Tensor& pixels) {
  TORCH_CHECK(all.is_contiguous(), "moments of ranks are not in rows");
  const auto channels = static_cast<int>(mean.numel());
  constexpr unsigned kThreads = 128;
  launch(kMomentKernels, kMergeMoments, at::kFloat,
         dim3((static_cast<unsigned>(channels) + kThreads - 1) / kThreads),
         dim3(kThreads), all.const_data_ptr<double>(),
         static_cast<int>(all.size(0)), channels, floats_of(mean),
         floats_of(var), floats_of(pixels));
}

at::Tensor apply(const at::Tensor& x, const at::Tensor& weight,
                 const at::Tensor& bias, const at::Tensor& mean,
                 const at::Tensor& var, const OptionalTensor& pixels,
                 double epsilon, bool relu, const OptionalTensor& shortcut,
                 const OptionalTensor& kept_mean,
                 const OptionalTensor& kept_var, double share) {
  if (shortcut) require_vectors(*shortcut, "a shortcut");
  at::Tensor y = channels_last_like(x);
  launch_on(kBatchNormApply, x, Map(x).mapping(),
            arguments(x, weight, bias, mean, var, epsilon, relu),
            shortcut ? shortcut->const_data_ptr() : nullptr,
            kept_channels(kept_mean, kept_var, share, pixels),
            y.mutable_data_ptr());
  return y;
}

TwoTensors max_pool(const at::Tensor& x, const at::Tensor& weight,
                    const at::Tensor& bias, const at::Tensor& mean,
                    const at::Tensor& var, const OptionalTensor& pixels,
                    double epsilon, const OptionalTensor& kept_mean,
                    const OptionalTensor& kept_var, double share) {
  at::Tensor y = empty_map(
      {x.size(0), x.size(1), (x.size(2) + 1) / 2, (x.size(3) + 1) / 2}, x);
  at::Tensor argmax = at::empty_like(y, y.options().dtype(at::kByte));
  launch_on(kBatchNormMaxPool, x, Map(y).mapping(),
            arguments(x, weight, bias, mean, var, epsilon, true),
            pool_shape(x, y), kept_channels(kept_mean, kept_var, share, pixels),
            y.mutable_data_ptr(), argmax.mutable_data_ptr());
  return {y, argmax};
}

at::Tensor average_pool(const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias, const at::Tensor& mean,
                        const at::Tensor& var, const OptionalTensor& pixels,
                        double epsilon, const OptionalTensor& kept_mean,
                        const OptionalTensor& kept_var, double share) {
  at::Tensor y =
      empty_map({x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2}, x);
  launch_on(kBatchNormAveragePool, x, Map(y).mapping(),
            arguments(x, weight, bias, mean, var, epsilon, true),
            pool_shape(x, y), kept_channels(kept_mean, kept_var, share, pixels),
            y.mutable_data_ptr());
  return y;
}

TwoTensors sums(const at::Tensor& dy, const OptionalTensor& argmax,
                const at::Tensor& x, const at::Tensor& weight,
                const at::Tensor& bias, const at::Tensor& mean,
                const at::Tensor& var, double epsilon, bool relu) {
  require_vectors(dy, "a gradient");
  const KernelGrid grid = (argmax ? tiles_of(x) : Map(x)).reducing();
  Partial partial = partial_of(grid, x);
  at::Tensor dweight = per_channel(x), dbias = per_channel(x);
  const BatchNormArguments n =
      arguments(x, weight, bias, mean, var, epsilon, relu);
  if (argmax)
    launch_on(kBatchNormMaxPoolSums, x, grid, n, dy.const_data_ptr(),
              argmax->const_data_ptr(), pool_shape(x, dy), partial.for_kernel(),
              floats_of(dweight), floats_of(dbias));
  else
    launch_on(kBatchNormSums, x, grid, n, dy.const_data_ptr(),
              partial.for_kernel(), floats_of(dweight), floats_of(dbias));
  return {dweight, dbias};
}

TwoTensors add_up(const at::Tensor& dy, const at::Tensor& x,
                  const at::Tensor& weight, const at::Tensor& bias,
                  const at::Tensor& mean, const at::Tensor& var, double epsilon,
                  bool relu, at::Tensor& dx, bool adds, at::Tensor& offset,
                  at::Tensor& slope) {
  require_vectors(dy, "a gradient");
  const bool pooled = dy.sizes() != x.sizes();
  const KernelGrid grid = (pooled ? tiles_of(x) : Map(x)).reducing();
  Partial partial = partial_of(grid, x);
  at::Tensor dweight = per_channel(x), dbias = per_channel(x);
  const BatchNormArguments n =
      arguments(x, weight, bias, mean, var, epsilon, relu);
  const PendingCorrections pending{floats_of(offset), floats_of(slope)};
  if (pooled)
    launch_on(kBatchNormAveragePoolAddUp, x, grid, n, dy.const_data_ptr(),
              pool_shape(x, dy), partial.for_kernel(), floats_of(dweight),
              floats_of(dbias), rows_of(dx), static_cast<int>(adds), pending);
  else
    launch_on(kBatchNormAddUp, x, grid, n, dy.const_data_ptr(),
              partial.for_kernel(), floats_of(dweight), floats_of(dbias),
              rows_of(dx), static_cast<int>(adds), pending);
  return {dweight, dbias};
}

at::Tensor corrected(const at::Tensor& sum, const at::Tensor& x,
                     const at::Tensor& mean, const OptionalTensor& pixels,
                     const at::Tensor& offset, const at::Tensor& slope) {
  at::Tensor dx = channels_last_like(x);
  const Map map(x);
  launch_on(kBatchNormCorrected, x, map.mapping(), rows_read(sum), rows_read(x),
            map.rows, map.vectors, floats(mean), floats(offset), floats(slope),
            number(pixels), dx.mutable_data_ptr());
  return dx;
}

at::Tensor gradient(const at::Tensor& dy, const OptionalTensor& argmax,
                    const at::Tensor& x, const at::Tensor& weight,
                    const at::Tensor& bias, const at::Tensor& mean,
                    const at::Tensor& var, const OptionalTensor& pixels,
                    double epsilon, bool relu, const at::Tensor& dweight,
                    const at::Tensor& dbias) {
  require_vectors(dy, "a gradient");
  at::Tensor dx = channels_last_like(x);
  const BatchNormArguments n =
      arguments(x, weight, bias, mean, var, epsilon, relu);
  if (argmax)
    launch_on(kBatchNormMaxPoolGradient, x, tiles_of(x).mapping(), n,
              dy.const_data_ptr(), argmax->const_data_ptr(), pool_shape(x, dy),
              floats(dweight), floats(dbias), number(pixels),
              dx.mutable_data_ptr());
  else
    launch_on(kBatchNormGradient, x, Map(x).mapping(), n, dy.const_data_ptr(),
              floats(dweight), floats(dbias), number(pixels),
              dx.mutable_data_ptr());
  return dx;
}

}  // namespace
}  // namespace chexnet

TORCH_LIBRARY_IMPL(chexnet, CUDA, library) {
  library.impl("batch_norm_statistics", chexnet::statistics);
  library.impl("batch_norm_moments", chexnet::moments);
  library.impl("merge_moments", chexnet::merge);
  library.impl("batch_norm_apply", chexnet::apply);
  library.impl("batch_norm_max_pool", chexnet::max_pool);
  library.impl("batch_norm_average_pool", chexnet::average_pool);
  library.impl("batch_norm_sums", chexnet::sums);
  library.impl("batch_norm_gradient", chexnet::gradient);
  library.impl("batch_norm_add_up", chexnet::add_up);
  library.impl("batch_norm_corrected", chexnet::corrected);
}
