// The signatures of our kernels, for the host code: a call with other arguments
// does not compile. tests/model/cuda/kernel_signatures_test.cpp holds the list
// to the kernels' source. Maps are void here, as their elements have three
// types.
#pragma once

#include "kernel_arguments.hpp"

namespace chexnet {

template <class Signature>
struct Kernel;
template <class... Parameters>
struct Kernel<void(Parameters...)> {
  const char* name;
};

// --- kernels/batch_norm.cu

inline constexpr Kernel<void(const void* x, long long rows, int vectors,
                             WrittenRows copy, PartialSums partial, float* mean,
                             float* var, double* moments)>
    kBatchNormStatistics{"batch_norm_statistics"};
inline constexpr Kernel<void(BatchNormArguments n, const void* shortcut,
                             KeptChannels kept, void* y)>
    kBatchNormApply{"batch_norm_apply"};
inline constexpr Kernel<void(BatchNormArguments n, const void* dy,
                             PartialSums partial, float* dweight, float* dbias)>
    kBatchNormSums{"batch_norm_sums"};
inline constexpr Kernel<void(
    BatchNormArguments n, const void* dy, PartialSums partial, float* dweight,
    float* dbias, WrittenRows dx, int adds, PendingCorrections pending)>
    kBatchNormAddUp{"batch_norm_add_up"};
inline constexpr Kernel<void(
    ReadRows sum, ReadRows x, long long rows, int vectors, const float* mean,
    const float* offsets, const float* slopes, const float* all_rows, void* dx)>
    kBatchNormCorrected{"batch_norm_corrected"};
inline constexpr Kernel<void(BatchNormArguments n, const void* dy,
                             const float* dweight, const float* dbias,
                             const float* all_rows, void* dx)>
    kBatchNormGradient{"batch_norm_gradient"};

// --- kernels/batch_norm_pool.cu

inline constexpr Kernel<void(BatchNormArguments n, PoolShape shape,
                             KeptChannels kept, void* y, void* argmax)>
    kBatchNormMaxPool{"batch_norm_max_pool"};
inline constexpr Kernel<void(BatchNormArguments n, const void* dy,
                             const void* argmax, PoolShape shape,
                             PartialSums partial, float* dweight, float* dbias)>
    kBatchNormMaxPoolSums{"batch_norm_max_pool_sums"};
inline constexpr Kernel<void(
    BatchNormArguments n, const void* dy, const void* argmax, PoolShape shape,
    const float* dweight, const float* dbias, const float* all_rows, void* dx)>
    kBatchNormMaxPoolGradient{"batch_norm_max_pool_gradient"};
inline constexpr Kernel<void(BatchNormArguments n, PoolShape shape,
                             KeptChannels kept, void* y)>
    kBatchNormAveragePool{"batch_norm_average_pool"};
inline constexpr Kernel<void(BatchNormArguments n, const void* dy,
                             PoolShape shape, PartialSums partial,
                             float* dweight, float* dbias, WrittenRows dx,
                             int adds, PendingCorrections pending)>
    kBatchNormAveragePoolAddUp{"batch_norm_average_pool_add_up"};

// --- kernels/moments.cu

inline constexpr Kernel<void(const double* all, int ranks, int channels,
                             float* mean, float* var, float* pixels)>
    kMergeMoments{"merge_moments"};

// --- kernels/relu.cu

inline constexpr Kernel<void(const void* dy, const void* residual,
                             const void* y, unsigned count, void* dx)>
    kReluBackward{"relu_backward"};

}  // namespace chexnet
