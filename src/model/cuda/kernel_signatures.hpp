// What our kernels take, for who launches them: a call with other arguments
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

// --- kernels/moments.cu

inline constexpr Kernel<void(const double* all, int ranks, int channels,
                             float* mean, float* var, float* pixels)>
    kMergeMoments{"merge_moments"};

// --- kernels/pool.cu

inline constexpr Kernel<void(const void* x, PooledShape in, PooledShape out,
                             unsigned count, void* y, void* taps)>
    kMaxPoolForward{"max_pool_forward"};
inline constexpr Kernel<void(const void* dy, const void* taps, PooledShape in,
                             PooledShape out, unsigned count, void* dx)>
    kMaxPoolBackward{"max_pool_backward"};
inline constexpr Kernel<void(const void* x, PooledShape in, PooledShape out,
                             unsigned count, void* y)>
    kAveragePoolForward{"average_pool_forward"};
inline constexpr Kernel<void(const void* dy, PooledShape in, PooledShape out,
                             unsigned count, void* dx)>
    kAveragePoolBackward{"average_pool_backward"};
inline constexpr Kernel<void(const void* dy, const void* more, const void* y,
                             unsigned count, void* dx)>
    kReluBackward{"relu_backward"};

}  // namespace chexnet
