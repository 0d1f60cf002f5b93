// What our kernels take, for who launches them: a call with other arguments
// does not compile. tests/model/cuda/kernel_signatures_test.cpp holds the list
// to the kernels' source. Maps are void here, as their elements have three
// types.
#pragma once

namespace chexnet {

// Of a map that is pooled; kernels/pool.cu has the same.
struct PooledShape {
  int height, width, vectors;
};

template <class Signature>
struct Kernel;
template <class... Parameters>
struct Kernel<void(Parameters...)> {
  const char* name;
};

// --- kernels/batch_norm.cu

inline constexpr Kernel<void(const void* x, long long rows, int vectors,
                             float* partial, unsigned* arrived, float* mean,
                             float* invstd, float* kept_mean, float* kept_var,
                             float momentum, float epsilon, double* moments)>
    kBatchNormStatistics{"batch_norm_statistics"};
inline constexpr Kernel<void(
    const void* x, long long rows, int vectors, const float* mean,
    const float* spread, int is_variance, float epsilon, const float* weight,
    const float* bias, const void* shortcut, int relu, void* y)>
    kBatchNormApply{"batch_norm_apply"};
inline constexpr Kernel<void(const void* dy, const void* x, long long rows,
                             int vectors, const float* mean,
                             const float* invstd, const float* weight,
                             const float* bias, int relu, float* partial,
                             unsigned* arrived, float* dweight, float* dbias)>
    kBatchNormSums{"batch_norm_sums"};
inline constexpr Kernel<void(
    const void* dy, const void* x, long long rows, int vectors,
    const float* mean, const float* invstd, const float* weight,
    const float* bias, int relu, const float* dweight, const float* dbias,
    const float* all_rows, const void* more, long long more_vectors, void* dx)>
    kBatchNormGradient{"batch_norm_gradient"};

// --- kernels/moments.cu

inline constexpr Kernel<void(const double* all, int ranks, int channels,
                             float* mean, float* var, float* invstd,
                             float* pixels, float* kept_mean, float* kept_var,
                             float share, float epsilon)>
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
