// BatchNorm of channels-last maps, with what often stands around it: a shortcut
// that is added, ReLU, and gradients that came another way. Compiled on the
// machine for its GPU (kernel_compiler.hpp), once for each type of elements;
// tests compile it for the CPU (tests/fakes/cuda_kernels.hpp).
//
// A map is rows (images x height x width) of channels. A thread has one vector
// of 16 bytes, the same channels of many rows. blockDim.x vectors times
// blockDim.y rows are a block's; gridDim.x blocks cover the channels, and all
// of gridDim.y divide the rows among them. Sums are of fp32 in an order that
// depends on the shape of the grid alone.
//
// ELEMENT_FP32, ELEMENT_FP16 or ELEMENT_BF16 is defined by who compiles.

struct alignas(16) Vector {
  unsigned int words[4];
};
struct alignas(16) Quad {
  float values[4];
};

#if !defined(KERNELS_ON_CPU)
#define KERNEL extern "C" __global__
#define TEXT(x) #x
#define UNROLL(count) _Pragma(TEXT(unroll count))

__device__ inline float half_to_float(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ inline unsigned short float_to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
// From the cache that all multiprocessors share: others have written it.
__device__ inline Quad load_across_blocks(const Quad* from) {
  const float4 v = __ldcg(reinterpret_cast<const float4*>(from));
  return {{v.x, v.y, v.z, v.w}};
}
#endif

#if defined(ELEMENT_FP32)
constexpr int kWidth = 4;  // elements of a vector
#else
constexpr int kWidth = 8;
#endif
constexpr int kSums = 2 * kWidth;  // of a vector: two for each channel
constexpr int kReducingThreads = 512;
constexpr int kMappingThreads = 256;

__device__ inline float as_float(unsigned int bits) {
  return __uint_as_float(bits);
}

#if defined(ELEMENT_FP32)

__device__ inline void read(const Vector& vector, float (&to)[kWidth]) {
  for (int i = 0; i < kWidth; ++i) to[i] = as_float(vector.words[i]);
}
__device__ inline Vector written(const float (&from)[kWidth]) {
  Vector vector;
  for (int i = 0; i < kWidth; ++i) vector.words[i] = __float_as_uint(from[i]);
  return vector;
}

#elif defined(ELEMENT_FP16)

__device__ inline void read(const Vector& vector, float (&to)[kWidth]) {
  for (int i = 0; i < kWidth; ++i)
    to[i] = half_to_float(
        static_cast<unsigned short>(vector.words[i / 2] >> (i % 2 * 16)));
}
__device__ inline Vector written(const float (&from)[kWidth]) {
  Vector vector;
  for (int i = 0; i < 4; ++i)
    vector.words[i] =
        float_to_half(from[2 * i]) |
        static_cast<unsigned int>(float_to_half(from[2 * i + 1])) << 16;
  return vector;
}

#else

__device__ inline void read(const Vector& vector, float (&to)[kWidth]) {
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = as_float(vector.words[i] << 16);
    to[2 * i + 1] = as_float(vector.words[i] & 0xffff0000U);
  }
}
// To the nearest, ties to even; a NaN stays one.
__device__ inline unsigned int bf16_bits(float value) {
  const unsigned int bits = __float_as_uint(value);
  if (value != value) return 0x7fc0U;
  return (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
}
__device__ inline Vector written(const float (&from)[kWidth]) {
  Vector vector;
  for (int i = 0; i < 4; ++i) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
        : "=r"(vector.words[i])
        : "f"(from[2 * i + 1]), "f"(from[2 * i]));
#else
    vector.words[i] =
        bf16_bits(from[2 * i]) | bf16_bits(from[2 * i + 1]) << 16;
#endif
  }
  return vector;
}

#endif

// Where a thread reads and writes.
struct Place {
  long long row, rows_apart;
  int vector;  // of a row
};

__device__ inline Place place() {
  Place p;
  p.row = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y;
  p.rows_apart = static_cast<long long>(gridDim.y) * blockDim.y;
  p.vector = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  return p;
}

// use(at, load(at)) for each of the thread's rows. Loads of kAhead rows are on
// their way before the first is used.
template <int kAhead, class Load, class Use>
__device__ inline void for_rows(const Place& p, long long rows, const Load& load,
                                const Use& use) {
  long long row = p.row;
  for (; row + (kAhead - 1) * p.rows_apart < rows;
       row += kAhead * p.rows_apart) {
    decltype(load(row)) loaded[kAhead];
    UNROLL(kAhead)
    for (int a = 0; a < kAhead; ++a) loaded[a] = load(row + a * p.rows_apart);
    UNROLL(kAhead)
    for (int a = 0; a < kAhead; ++a)
      use(row + a * p.rows_apart, loaded[a]);
  }
  for (; row < rows; row += p.rows_apart) use(row, load(row));
}

struct Two {
  Vector first, second;
};
struct Three {
  Vector first, second, third;
};

__device__ inline void channels_of(const float* values, int vector,
                                   float (&to)[kWidth]) {
  for (int i = 0; i < kWidth; ++i) to[i] = values[vector * kWidth + i];
}

// Adds `sums` of all threads and blocks. True in the block that comes last for
// these channels: `total[j]` there is the sum `j` of the block's vectors,
// kSums for each. `partial` has room for gridDim.y times all sums; `arrived`
// counts for each blockIdx.x and is zero before and after.
__device__ inline bool add_all(const float (&sums)[kSums], float* partial,
                               unsigned int* arrived, float* total) {
  __shared__ bool is_last;
  const int thread =
      static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const int own = static_cast<int>(blockDim.x) * kSums;  // sums of a block
  const int all = own * static_cast<int>(gridDim.x);
  for (int i = 0; i < kSums; ++i) total[thread * kSums + i] = sums[i];
  __syncthreads();
  float* const mine = partial + static_cast<long long>(blockIdx.y) * all +
                      static_cast<int>(blockIdx.x) * own;
  for (int j = thread; j < own; j += threads) {
    float sum = 0;
    for (int y = 0; y < static_cast<int>(blockDim.y); ++y)
      sum += total[y * own + j];
    mine[j] = sum;
  }
  __threadfence();
  __syncthreads();
  if (thread == 0)
    is_last = atomicAdd(arrived + blockIdx.x, 1U) == gridDim.y - 1;
  __syncthreads();
  if (!is_last) return false;
  __threadfence();
  // Four sums at once; what is left over of the threads takes other blocks'.
  const int quads = own / 4, teams = threads / quads;
  const int quad = thread % quads, team = thread / quads;
  if (team < teams) {
    const Quad* const from =
        reinterpret_cast<const Quad*>(partial) + blockIdx.x * quads + quad;
    Quad sum = {{0, 0, 0, 0}};
    UNROLL(8)
    for (int y = team; y < static_cast<int>(gridDim.y); y += teams) {
      const Quad next = load_across_blocks(from + y * (all / 4));
      for (int i = 0; i < 4; ++i) sum.values[i] += next.values[i];
    }
    reinterpret_cast<Quad*>(total)[team * quads + quad] = sum;
  }
  __syncthreads();
  for (int j = thread; j < own; j += threads) {
    float sum = 0;
    for (int t = 0; t < teams; ++t) sum += total[t * own + j];
    total[j] = sum;
  }
  if (thread == 0) arrived[blockIdx.x] = 0;
  __syncthreads();
  return true;
}

// Of each channel: mean and 1 / sqrt(variance + epsilon) of the map, and
// kept = (1 - momentum) * kept + momentum * new of mean and unbiased variance.
// The sums are of distances from the first row, so that a mean far from 0 takes
// no digits from the variance.
KERNEL void __launch_bounds__(kReducingThreads)
    batch_norm_statistics(const Vector* x, long long rows, int vectors,
                          float* partial, unsigned int* arrived, float* mean,
                          float* invstd, float* kept_mean, float* kept_var,
                          float momentum, float epsilon) {
  alignas(16) __shared__ float total[kReducingThreads * kSums];
  const Place p = place();
  float first[kWidth], sums[kSums] = {};
  read(x[p.vector], first);
  for_rows<4>(
      p, rows, [&](long long row) { return x[row * vectors + p.vector]; },
      [&](long long, const Vector& loaded) {
        float v[kWidth];
        read(loaded, v);
        for (int i = 0; i < kWidth; ++i) {
          const float distance = v[i] - first[i];
          sums[i] += distance;
          sums[kWidth + i] += distance * distance;
        }
      });
  if (!add_all(sums, partial, arrived, total)) return;
  if (threadIdx.y != 0) return;
  const float count = static_cast<float>(rows);
  for (int i = 0; i < kWidth; ++i) {
    const float* const own = total + threadIdx.x * kSums;
    const int channel = p.vector * kWidth + i;
    const float shift = own[i] / count;
    const float variance =
        fmaxf(own[kWidth + i] / count - shift * shift, 0.0F);
    mean[channel] = first[i] + shift;
    invstd[channel] = 1.0F / sqrtf(variance + epsilon);
    const float unbiased = rows > 1 ? variance * (count / (count - 1)) : 0;
    kept_mean[channel] += momentum * (first[i] + shift - kept_mean[channel]);
    kept_var[channel] += momentum * (unbiased - kept_var[channel]);
  }
}

// y = (x - mean) * scale + bias (+ shortcut), then ReLU. `spread` is invstd, or
// the variance where `is_variance`. y may be x.
KERNEL void __launch_bounds__(kMappingThreads)
    batch_norm_apply(const Vector* x, long long rows, int vectors,
                     const float* mean, const float* spread, int is_variance,
                     float epsilon, const float* weight, const float* bias,
                     const Vector* shortcut, int relu, Vector* y) {
  const Place p = place();
  float center[kWidth], scale[kWidth], offset[kWidth], w[kWidth];
  channels_of(mean, p.vector, center);
  channels_of(spread, p.vector, scale);
  channels_of(weight, p.vector, w);
  channels_of(bias, p.vector, offset);
  for (int i = 0; i < kWidth; ++i)
    scale[i] =
        w[i] * (is_variance ? 1.0F / sqrtf(scale[i] + epsilon) : scale[i]);
  for_rows<4>(
      p, rows,
      [&](long long row) {
        const long long at = row * vectors + p.vector;
        return Two{x[at], shortcut ? shortcut[at] : Vector{}};
      },
      [&](long long row, const Two& loaded) {
        float v[kWidth], more[kWidth];
        read(loaded.first, v);
        read(loaded.second, more);
        for (int i = 0; i < kWidth; ++i) {
          v[i] = fmaf(v[i] - center[i], scale[i], offset[i]) + more[i];
          if (relu) v[i] = v[i] < 0 ? 0 : v[i];  // a NaN stays one
        }
        y[row * vectors + p.vector] = written(v);
      });
}

// Sums over the rows of dy, 0 where ReLU cut: dbias = sum(dy) and dweight =
// sum(dy * (x - mean) * invstd).
KERNEL void __launch_bounds__(kReducingThreads, 2)
    batch_norm_sums(const Vector* dy, const Vector* x, long long rows,
                    int vectors, const float* mean, const float* invstd,
                    const float* weight, const float* bias, int relu,
                    float* partial, unsigned int* arrived, float* dweight,
                    float* dbias) {
  alignas(16) __shared__ float total[kReducingThreads * kSums];
  const Place p = place();
  float center[kWidth], scale[kWidth], offset[kWidth], w[kWidth];
  channels_of(mean, p.vector, center);
  channels_of(invstd, p.vector, scale);
  channels_of(weight, p.vector, w);
  channels_of(bias, p.vector, offset);
  for (int i = 0; i < kWidth; ++i) scale[i] *= w[i];
  float sums[kSums] = {};
  for_rows<2>(
      p, rows,
      [&](long long row) {
        const long long at = row * vectors + p.vector;
        return Two{dy[at], x[at]};
      },
      [&](long long, const Two& loaded) {
        float d[kWidth], v[kWidth];
        read(loaded.first, d);
        read(loaded.second, v);
        for (int i = 0; i < kWidth; ++i) {
          const float distance = v[i] - center[i];
          if (relu && fmaf(distance, scale[i], offset[i]) <= 0) d[i] = 0;
          sums[i] += d[i];
          sums[kWidth + i] += d[i] * distance;
        }
      });
  if (!add_all(sums, partial, arrived, total)) return;
  if (threadIdx.y != 0) return;
  for (int i = 0; i < kWidth; ++i) {
    const float* const own = total + threadIdx.x * kSums;
    const int channel = p.vector * kWidth + i;
    dbias[channel] = own[i];
    dweight[channel] = own[kWidth + i] * invstd[channel];
  }
}

// dx = scale * (dy - mean(dy) - z * mean(dy * z)) with z = (x - mean) * invstd
// and scale = weight * invstd (Ioffe and Szegedy, 2015), plus `more`, rows of
// which are `more_vectors` apart, where it is given. dx may be dy.
KERNEL void __launch_bounds__(kMappingThreads)
    batch_norm_gradient(const Vector* dy, const Vector* x, long long rows,
                        int vectors, const float* mean, const float* invstd,
                        const float* weight, const float* bias, int relu,
                        const float* dweight, const float* dbias,
                        const Vector* more, long long more_vectors,
                        Vector* dx) {
  const Place p = place();
  const float count = static_cast<float>(rows);
  float center[kWidth], scale[kWidth], offset[kWidth], flat[kWidth],
      slope[kWidth];
  channels_of(mean, p.vector, center);
  channels_of(bias, p.vector, offset);
  channels_of(invstd, p.vector, slope);
  channels_of(weight, p.vector, scale);
  for (int i = 0; i < kWidth; ++i) {
    const int channel = p.vector * kWidth + i;
    scale[i] *= slope[i];
    flat[i] = -scale[i] * (dbias[channel] / count);
    slope[i] *= -scale[i] * (dweight[channel] / count);
  }
  for_rows<2>(
      p, rows,
      [&](long long row) {
        const long long at = row * vectors + p.vector;
        return Three{
            dy[at], x[at],
            more ? more[row * more_vectors + p.vector] : Vector{}};
      },
      [&](long long row, const Three& loaded) {
        float d[kWidth], v[kWidth], sum[kWidth];
        read(loaded.first, d);
        read(loaded.second, v);
        read(loaded.third, sum);
        for (int i = 0; i < kWidth; ++i) {
          const float distance = v[i] - center[i];
          if (relu && fmaf(distance, scale[i], offset[i]) <= 0) d[i] = 0;
          sum[i] += fmaf(d[i], scale[i], fmaf(distance, slope[i], flat[i]));
        }
        dx[row * vectors + p.vector] = written(sum);
      });
}
