// BatchNorm of model/aten/own_operators.hpp on CUDA, a rank's own and that of
// all ranks (synchronized_batch_norm.hpp). Counters of the last block
// are of a stream, as two kernels at a time would mix them up.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <utility>

#include "kernel_grid.hpp"
#include "own_kernels.hpp"

namespace chexnet {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using TwoTensors = std::tuple<at::Tensor, at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using FourTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// kernels/batch_norm.cu has the same numbers.
constexpr int64_t kReducingThreads = 512, kMappingThreads = 256;
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

// A map as the kernels see it.
struct Map {
  explicit Map(const at::Tensor& x)
      : rows(x.numel() / x.size(1)),
        vectors(static_cast<int>(x.size(1) *
                                 static_cast<int64_t>(x.element_size()) /
                                 kVectorBytes)) {
    require_vectors(x, "a map that is normalized");
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

// What blocks leave for the last of them.
struct Partial {
  at::Tensor sums, arrived;
  unsigned* counters() {
    return reinterpret_cast<unsigned*>(arrived.mutable_data_ptr<int>());
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
      at::empty({grid.row_blocks, 2 * x.size(1)}, options.dtype(at::kFloat));
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

const void* address(const OptionalTensor& t) {
  return t ? t->const_data_ptr() : nullptr;
}

at::Tensor per_channel(const at::Tensor& x) {
  return at::empty({x.size(1)},
                   x.options()
                       .dtype(at::kFloat)
                       .memory_format(at::MemoryFormat::Contiguous));
}

at::Tensor apply(const at::Tensor& x, const at::Tensor& weight,
                 const at::Tensor& bias, const at::Tensor& mean,
                 const at::Tensor& spread, bool is_variance, double epsilon,
                 const OptionalTensor& shortcut, bool relu) {
  const Map map(x);
  if (shortcut) require_vectors(*shortcut, "a shortcut");
  at::Tensor y = at::empty_like(x);
  launch_on(kBatchNormApply, x, map.mapping(), x.const_data_ptr(), map.rows,
            map.vectors, floats(mean), floats(spread),
            static_cast<int>(is_variance), static_cast<float>(epsilon),
            floats(weight), floats(bias), address(shortcut),
            static_cast<int>(relu), y.mutable_data_ptr());
  return y;
}

ThreeTensors training(const at::Tensor& x, const at::Tensor& weight,
                      const at::Tensor& bias, at::Tensor& kept_mean,
                      at::Tensor& kept_var, double momentum, double epsilon,
                      const OptionalTensor& shortcut, bool relu) {
  const Map map(x);
  const KernelGrid grid = map.reducing();
  Partial partial = partial_of(grid, x);
  at::Tensor mean = per_channel(x), invstd = per_channel(x);
  launch_on(kBatchNormStatistics, x, grid, x.const_data_ptr(), map.rows,
            map.vectors, floats_of(partial.sums), partial.counters(),
            floats_of(mean), floats_of(invstd), floats_of(kept_mean),
            floats_of(kept_var), static_cast<float>(momentum),
            static_cast<float>(epsilon), nullptr);
  return {apply(x, weight, bias, mean, invstd, false, epsilon, shortcut, relu),
          mean, invstd};
}

at::Tensor inference(const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& bias, const at::Tensor& mean,
                     const at::Tensor& var, double epsilon,
                     const OptionalTensor& shortcut, bool relu) {
  return apply(x, weight, bias, mean, var, true, epsilon, shortcut, relu);
}

// How far apart rows of pixels of a map are, which may be a part of the
// channels of a wider one.
long long vectors_apart(const at::Tensor& map, const Map& like) {
  const int64_t pitch = map.stride(3);
  TORCH_CHECK(map.stride(1) == 1 && map.stride(2) == map.size(3) * pitch &&
                  map.stride(0) == map.size(2) * map.stride(2) &&
                  map.numel() / map.size(1) == like.rows,
              "BatchNorm's kernels add maps of channels-last pixels");
  const int64_t bytes = pitch * static_cast<int64_t>(map.element_size());
  TORCH_CHECK(
      bytes % kVectorBytes == 0 &&
          reinterpret_cast<uintptr_t>(map.const_data_ptr()) % kVectorBytes == 0,
      "BatchNorm's kernels add maps that begin at 16 bytes");
  return bytes / kVectorBytes;
}

TwoTensors sums(const at::Tensor& dy, const at::Tensor& x,
                const at::Tensor& weight, const at::Tensor& bias,
                const at::Tensor& mean, const at::Tensor&,
                const at::Tensor& invstd, double, bool relu) {
  const Map map(x);
  require_vectors(dy, "a gradient");
  const KernelGrid grid = map.reducing();
  Partial partial = partial_of(grid, x);
  at::Tensor dweight = per_channel(x), dbias = per_channel(x);
  launch_on(kBatchNormSums, x, grid, dy.const_data_ptr(), x.const_data_ptr(),
            map.rows, map.vectors, floats(mean), floats(invstd), floats(weight),
            floats(bias), static_cast<int>(relu), floats_of(partial.sums),
            partial.counters(), floats_of(dweight), floats_of(dbias));
  return {dweight, dbias};
}

// `pixels`: how many the sums are of, where they are not the map's alone.
at::Tensor gradient(const at::Tensor& dy, const at::Tensor& x,
                    const at::Tensor& weight, const at::Tensor& bias,
                    const at::Tensor& mean, const at::Tensor& invstd,
                    const at::Tensor& dweight, const at::Tensor& dbias,
                    const OptionalTensor& pixels, const OptionalTensor& more,
                    bool relu) {
  const Map map(x);
  require_vectors(dy, "a gradient");
  at::Tensor dx = at::empty_like(x);
  launch_on(kBatchNormGradient, x, map.mapping(), dy.const_data_ptr(),
            x.const_data_ptr(), map.rows, map.vectors, floats(mean),
            floats(invstd), floats(weight), floats(bias),
            static_cast<int>(relu), floats(dweight), floats(dbias),
            pixels ? pixels->const_data_ptr<float>() : nullptr, address(more),
            more ? vectors_apart(*more, map) : 0, dx.mutable_data_ptr());
  return dx;
}

ThreeTensors gradients(const at::Tensor& dy, const at::Tensor& x,
                       const at::Tensor& weight, const at::Tensor& bias,
                       const at::Tensor& mean, const at::Tensor& invstd,
                       double epsilon, const OptionalTensor& more, bool relu) {
  const auto [dweight, dbias] =
      sums(dy, x, weight, bias, mean, {}, invstd, epsilon, relu);
  return {gradient(dy, x, weight, bias, mean, invstd, dweight, dbias, {}, more,
                   relu),
          dweight, dbias};
}

// --- of all ranks

at::Tensor moments(const at::Tensor& x, const at::Tensor&, const at::Tensor&) {
  const Map map(x);
  const KernelGrid grid = map.reducing();
  Partial partial = partial_of(grid, x);
  at::Tensor own = at::empty({2 * x.size(1) + 1},
                             x.options()
                                 .dtype(at::kDouble)
                                 .memory_format(at::MemoryFormat::Contiguous));
  launch_on(kBatchNormStatistics, x, grid, x.const_data_ptr(), map.rows,
            map.vectors, floats_of(partial.sums), partial.counters(), nullptr,
            nullptr, nullptr, nullptr, 0, 0, own.mutable_data_ptr<double>());
  return own;
}

FourTensors merged(const at::Tensor& all, at::Tensor& kept_mean,
                   at::Tensor& kept_var, double share, double epsilon) {
  TORCH_CHECK(all.is_contiguous(), "moments of ranks are not in rows");
  const auto channels = static_cast<int>(kept_mean.numel());
  constexpr unsigned kThreads = 128;
  at::Tensor mean = at::empty_like(kept_mean), var = at::empty_like(kept_mean),
             invstd = at::empty_like(kept_mean),
             pixels = at::empty({1}, kept_mean.options());
  launch(kMomentKernels, kMergeMoments, at::kFloat,
         dim3((static_cast<unsigned>(channels) + kThreads - 1) / kThreads),
         dim3(kThreads), all.const_data_ptr<double>(),
         static_cast<int>(all.size(0)), channels, floats_of(mean),
         floats_of(var), floats_of(invstd), floats_of(pixels),
         floats_of(kept_mean), floats_of(kept_var), static_cast<float>(share),
         static_cast<float>(epsilon));
  return {mean, var, invstd, pixels};
}

}  // namespace
}  // namespace chexnet

TORCH_LIBRARY_IMPL(chexnet, CUDA, library) {
  library.impl("batch_norm", chexnet::training);
  library.impl("batch_norm_inference", chexnet::inference);
  library.impl("batch_norm_backward", chexnet::gradients);
  library.impl("batch_norm_moments", chexnet::moments);
  library.impl("merge_moments", chexnet::merged);
  library.impl("batch_norm_sums", chexnet::sums);
  library.impl("batch_norm_gradient", chexnet::gradient);
}
