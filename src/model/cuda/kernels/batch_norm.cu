// BatchNorm of channels-last maps, with its frequent neighbors: a shortcut that
// is added, ReLU, and gradients that came another way. After vectors.cu.
//
// A map is rows (images x height x width) of channels. A thread has one vector,
// the same channels of many rows. blockDim.x vectors times blockDim.y rows are
// a block's; gridDim.x blocks cover the channels, the last with threads that
// may have none, and all of gridDim.y divide the rows among them. Sums are of fp32 in an order that depends on the shape
// of the grid alone.

constexpr int kSums = 2 * kWidth;  // of a vector: two for each channel
using BlockSums = float[kReducingThreads * kSums];

// Maps have less than 2^31 vectors (own_kernels_take()). 64 bits would cost
// registers.
using Row = unsigned int;

// Where a thread reads and writes.
struct Place {
  Row row, rows_apart;
  int vector;  // of a row
};

constexpr Row kNoRow = 0xffffffffU;

// A thread beyond the last of `vectors` has that one, to read, and no row.
__device__ inline Place place(int vectors) {
  Place p;
  p.row = blockIdx.y * blockDim.y + threadIdx.y;
  p.rows_apart = gridDim.y * blockDim.y;
  p.vector = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (p.vector < vectors) return p;
  p.vector = vectors - 1;
  p.row = kNoRow;
  return p;
}

// use(row, load(row)) for each of the thread's rows. Loads of kAhead rows are
// on their way before the first is used.
template <int kAhead, class Load, class Use>
__device__ inline void for_rows(const Place& p, long long rows,
                                const Load& load, const Use& use) {
  for (Row row = p.row; row < rows; row += kAhead * p.rows_apart) {
    decltype(load(row)) loaded[kAhead];
    UNROLL(kAhead)
    for (int a = 0; a < kAhead; ++a)
      if (row + a * p.rows_apart < rows)
        loaded[a] = load(row + a * p.rows_apart);
    UNROLL(kAhead)
    for (int a = 0; a < kAhead; ++a)
      if (row + a * p.rows_apart < rows) use(row + a * p.rows_apart, loaded[a]);
  }
}

struct Two {
  Vector first, second;
};
struct Three {
  Vector first, second, third;
};

__device__ inline const Vector* vectors_of(const void* map) {
  return static_cast<const Vector*>(map);
}

// `values` begin at 16 bytes.
__device__ inline void channels_of(const float* values, int vector,
                                   float (&to)[kWidth]) {
  const Quad* const quads =
      reinterpret_cast<const Quad*>(values + vector * kWidth);
  for (int q = 0; q < kWidth / 4; ++q) {
    const Quad quad = quads[q];
    for (int i = 0; i < 4; ++i) to[4 * q + i] = quad.values[i];
  }
}

// 1 / sqrt(variance + epsilon).
__device__ inline void inverse_deviations(const BatchNormArguments& n,
                                          int vector, float (&to)[kWidth]) {
  channels_of(n.var, vector, to);
  for (int i = 0; i < kWidth; ++i) to[i] = 1.0F / sqrtf(to[i] + n.epsilon);
}

// BatchNorm of a vector's channels: offset + scale * (x - center), with scale =
// weight / sqrt(variance + epsilon). Of equal bits in all kernels: ReLU cuts
// the same elements in backward.
struct Normal {
  float center[kWidth], scale[kWidth], offset[kWidth];
  __device__ inline Normal(const BatchNormArguments& n, int vector) {
    float weight[kWidth];
    channels_of(n.mean, vector, center);
    inverse_deviations(n, vector, scale);
    channels_of(n.weight, vector, weight);
    channels_of(n.bias, vector, offset);
    for (int i = 0; i < kWidth; ++i) scale[i] *= weight[i];
  }
  __device__ inline float of(float distance, int i) const {
    return fmaf(distance, scale[i], offset[i]);
  }
};

// A NaN stays one.
__device__ inline float relu(float value) { return value <= 0 ? 0 : value; }

// Adds `sums` of all threads and blocks. True in the block that comes last for
// these channels: there `total[i * blockDim.x + threadIdx.x]` is the sum `i` of
// the thread's vector. `partial` has room for gridDim.y times all sums;
// `arrived` counts for each blockIdx.x and is zero before and after.
__device__ inline bool add_all(const float (&sums)[kSums],
                               const PartialSums& partial, float* total) {
  SHARED(bool, is_last);
  const int width = static_cast<int>(blockDim.x);
  const int height = static_cast<int>(blockDim.y);
  const int threads = width * height;
  const int thread =
      static_cast<int>(threadIdx.y) * width + static_cast<int>(threadIdx.x);
  const int own = width * kSums;  // sums of a block
  const int all = own * static_cast<int>(gridDim.x);
  for (int i = 0; i < kSums; ++i) total[i * threads + thread] = sums[i];
  __syncthreads();
  float* const mine = partial.sums + static_cast<long long>(blockIdx.y) * all +
                      static_cast<int>(blockIdx.x) * own;
  for (int j = thread; j < own; j += threads) {
    const float* const column = total + j / width * threads + j % width;
    float sum = 0;
    UNROLL(4)
    for (int y = 0; y < height; ++y) sum += column[y * width];
    store_across_blocks(mine + j, sum);
  }
  __threadfence();
  __syncthreads();
  if (thread == 0)
    is_last = atomicAdd(partial.arrived + blockIdx.x, 1U) == gridDim.y - 1;
  __syncthreads();
  if (!is_last) return false;
  __threadfence();
  // Four sums at once; what is left over of the threads takes other blocks'.
  const int quads = own / 4, teams = threads / quads;
  const int quad = thread % quads, team = thread / quads;
  if (team < teams) {
    const Quad* const from =
        reinterpret_cast<const Quad*>(partial.sums) + blockIdx.x * quads + quad;
    Quad sum = {{0, 0, 0, 0}};
    UNROLL(8)
    for (int y = team; y < static_cast<int>(gridDim.y); y += teams) {
      const Quad next = load_across_blocks(from + y * (all / 4));
      for (int i = 0; i < 4; ++i) sum.values[i] += next.values[i];
    }
    reinterpret_cast<Quad*>(total)[team * quads + quad] = sum;
  }
  __syncthreads();
  // Each thread reads and writes other columns.
  for (int j = thread; j < own; j += threads) {
    float sum = 0;
    for (int t = 0; t < teams; ++t) sum += total[t * own + j];
    total[j] = sum;
  }
  if (thread == 0) partial.arrived[blockIdx.x] = 0;
  __syncthreads();
  return true;
}

// Of each channel of x, whose rows are dense: mean and variance. Or, where
// `moments` is given, that alone, [2 * channels + 1]: means, variances and the
// number of rows, for a merge with the other ranks' moments. Rows also go to
// `copy`, where it is given.
// The sums are of distances from the mean of eight rows, so that a mean far
// from 0, or one strange pixel, takes few digits from the variance.
KERNEL void __launch_bounds__(kReducingThreads)
    batch_norm_statistics(const Vector* x, long long rows, int vectors,
                          WrittenRows copy, PartialSums partial, float* mean,
                          float* var, double* moments) {
  SHARED(BlockSums, total);
  const Place p = place(vectors);
  constexpr int kSample = 8;
  float shift[kWidth] = {}, sums[kSums] = {};
  UNROLL(kSample)
  for (int s = 0; s < kSample; ++s) {
    float v[kWidth];
    read(x[rows * (2 * s + 1) / (2 * kSample) * vectors + p.vector], v);
    for (int i = 0; i < kWidth; ++i) shift[i] += v[i] * (1.0F / kSample);
  }
  Vector* const copied = static_cast<Vector*>(copy.first);
  for_rows<4>(
      p, rows, [&](Row row) { return x[row * vectors + p.vector]; },
      [&](Row row, const Vector& loaded) {
        if (copied) copied[row * copy.apart + p.vector] = loaded;
        float v[kWidth];
        read(loaded, v);
        for (int i = 0; i < kWidth; ++i) {
          const float distance = v[i] - shift[i];
          sums[i] += distance;
          sums[kWidth + i] += distance * distance;
        }
      });
  if (!add_all(sums, partial, total)) return;
  if (threadIdx.y != 0 || p.row == kNoRow) return;
  const float count = static_cast<float>(rows);
  for (int i = 0; i < kWidth; ++i) {
    const int channel = p.vector * kWidth + i;
    const float mean_from_shift = total[i * blockDim.x + threadIdx.x] / count;
    const float squares =
        total[(kWidth + i) * blockDim.x + threadIdx.x] / count;
    const float rest = squares - mean_from_shift * mean_from_shift;
    const float variance = rest < 0 ? 0 : rest;  // by rounding
    if (moments) {
      const long long channels = static_cast<long long>(vectors) * kWidth;
      moments[channel] = static_cast<double>(shift[i]) + mean_from_shift;
      moments[channels + channel] = variance;
      if (channel == 0) moments[2 * channels] = static_cast<double>(rows);
      continue;
    }
    mean[channel] = shift[i] + mean_from_shift;
    var[channel] = variance;
  }
}

// Where `kept` is given, it learns of the statistics.
__device__ inline void keep(const KeptChannels& kept,
                            const BatchNormArguments& n, const Place& p) {
  if (!kept.mean || p.row != 0) return;
  const float count = kept.rows ? *kept.rows : static_cast<float>(n.rows);
  const float unbiased = count > 1 ? count / (count - 1) : 0;
  for (int i = 0; i < kWidth; ++i) {
    const int channel = p.vector * kWidth + i;
    kept.mean[channel] += kept.share * n.mean[channel];
    kept.var[channel] += kept.share * (n.var[channel] * unbiased);
  }
}

// y = BatchNorm(x) (+ shortcut), then ReLU.
KERNEL void __launch_bounds__(kMappingThreads)
    batch_norm_apply(BatchNormArguments n, const Vector* shortcut,
                     KeptChannels kept, Vector* y) {
  const Place p = place(n.vectors);
  keep(kept, n, p);
  const Normal normal(n, p.vector);
  for_rows<4>(
      p, n.rows,
      [&](Row row) {
        return Two{vectors_of(n.x)[row * n.x_apart + p.vector],
                   shortcut ? shortcut[row * n.vectors + p.vector] : Vector{}};
      },
      [&](Row row, const Two& loaded) {
        float v[kWidth], more[kWidth];
        read(loaded.first, v);
        read(loaded.second, more);
        for (int i = 0; i < kWidth; ++i) {
          v[i] = normal.of(v[i] - normal.center[i], i) + more[i];
          if (n.relu) v[i] = relu(v[i]);
        }
        y[row * n.vectors + p.vector] = packed(v);
      });
}

// A gradient that has a value for each element of x. Those of
// batch_norm_pool.cu come from a map that was pooled.
template <int kAhead>
struct DenseGradient {
  static constexpr bool kIsCut = false;  // by ReLU
  const Vector* dy;
  // use(row, dy, x, what is in `sum`) for each of the thread's rows. `sum` may
  // be none.
  template <class Use>
  __device__ inline void for_each(const Place& p, const BatchNormArguments& n,
                                  const WrittenRows& sum,
                                  const Use& use) const {
    const Vector* const before = vectors_of(sum.first);
    for_rows<kAhead>(
        p, n.rows,
        [&](Row row) {
          return Three{dy[row * n.vectors + p.vector],
                       vectors_of(n.x)[row * n.x_apart + p.vector],
                       before ? before[row * sum.apart + p.vector] : Vector{}};
        },
        [&](Row row, const Three& loaded) {
          float d[kWidth];
          read(loaded.first, d);
          use(row, d, loaded.second, loaded.third);
        });
  }
};

// Where a reader of x adds its part of the gradient by x.
struct ReadersSum {
  WrittenRows dx;
  int adds;
  PendingCorrections pending;
};

// Sums over the rows of dy, 0 where ReLU cut: dbias = sum(dy) and dweight =
// sum(dy * (x - mean) * invstd).
//
// With kAddsUp, in the same pass, the gradient by an x that several BatchNorms
// read, as far as it is of a row alone: dx = scale * dy, or with `adds` that on
// top of what is in dx. What remains is linear in x; batch_norm_corrected takes
// it away once for all readers, who add it up in `pending`.
template <bool kAddsUp, class Gradient>
__device__ inline void backward_sums(const BatchNormArguments& n,
                                     const Gradient& gradient,
                                     const PartialSums& partial, float* total,
                                     float* dweight, float* dbias,
                                     const ReadersSum& sum_of) {
  const Place p = place(n.vectors);
  const Normal normal(n, p.vector);
  Vector* const dx = static_cast<Vector*>(sum_of.dx.first);
  float sums[kSums] = {};
  gradient.for_each(
      p, n, {kAddsUp && sum_of.adds ? dx : nullptr, sum_of.dx.apart},
      [&](Row row, float(&d)[kWidth], const Vector& x, const Vector& before) {
        float v[kWidth];
        read(x, v);
        for (int i = 0; i < kWidth; ++i) {
          const float distance = v[i] - normal.center[i];
          if (!Gradient::kIsCut && n.relu && normal.of(distance, i) <= 0)
            d[i] = 0;
          sums[i] += d[i];
          sums[kWidth + i] += d[i] * distance;
        }
        if (!kAddsUp) return;
        read(before, v);
        for (int i = 0; i < kWidth; ++i)
          d[i] = fmaf(d[i], normal.scale[i], v[i]);
        dx[row * sum_of.dx.apart + p.vector] = packed(d);
      });
  if (!add_all(sums, partial, total)) return;
  if (threadIdx.y != 0 || p.row == kNoRow) return;
  float invstd[kWidth];
  inverse_deviations(n, p.vector, invstd);
  for (int i = 0; i < kWidth; ++i) {
    const int channel = p.vector * kWidth + i;
    const float db = total[i * blockDim.x + threadIdx.x];
    const float dw = total[(kWidth + i) * blockDim.x + threadIdx.x] * invstd[i];
    dbias[channel] = db;
    dweight[channel] = dw;
    if (kAddsUp) {
      sum_of.pending.offset[channel] += normal.scale[i] * db;
      sum_of.pending.slope[channel] += normal.scale[i] * invstd[i] * dw;
    }
  }
}

KERNEL void __launch_bounds__(kReducingThreads)
    batch_norm_sums(BatchNormArguments n, const Vector* dy, PartialSums partial,
                    float* dweight, float* dbias) {
  SHARED(BlockSums, total);
  backward_sums<false>(n, DenseGradient<4>{dy}, partial, total, dweight, dbias,
                       {});
}

KERNEL void __launch_bounds__(kReducingThreads)
    batch_norm_add_up(BatchNormArguments n, const Vector* dy,
                      PartialSums partial, float* dweight, float* dbias,
                      WrittenRows dx, int adds, PendingCorrections pending) {
  SHARED(BlockSums, total);
  backward_sums<true>(n, DenseGradient<3>{dy}, partial, total, dweight, dbias,
                      {dx, adds, pending});
}

// dx = sum - offset / count - (x - mean) * slope / count, with count the number
// of rows, or *all_rows, where offsets and slopes are of other ranks' rows too.
KERNEL void __launch_bounds__(kMappingThreads)
    batch_norm_corrected(ReadRows sum, ReadRows x, long long rows, int vectors,
                         const float* mean, const float* offsets,
                         const float* slopes, const float* all_rows,
                         Vector* dx) {
  const Place p = place(vectors);
  const float count = all_rows ? *all_rows : static_cast<float>(rows);
  float center[kWidth], offset[kWidth], slope[kWidth];
  channels_of(mean, p.vector, center);
  channels_of(offsets, p.vector, offset);
  channels_of(slopes, p.vector, slope);
  for (int i = 0; i < kWidth; ++i) {
    offset[i] /= count;
    slope[i] /= count;
  }
  for_rows<4>(
      p, rows,
      [&](Row row) {
        return Two{vectors_of(sum.first)[row * sum.apart + p.vector],
                   vectors_of(x.first)[row * x.apart + p.vector]};
      },
      [&](Row row, const Two& loaded) {
        float d[kWidth], v[kWidth];
        read(loaded.first, d);
        read(loaded.second, v);
        for (int i = 0; i < kWidth; ++i)
          d[i] -= fmaf(v[i] - center[i], slope[i], offset[i]);
        dx[row * vectors + p.vector] = packed(d);
      });
}

// dx = scale * (dy - mean(dy) - z * mean(dy * z)) with z = (x - mean) * invstd
// and scale = weight * invstd (Ioffe and Szegedy, 2015). Means are dbias and
// dweight by the number of rows, or by *all_rows, where they are sums of other
// ranks' rows too.
template <class Gradient>
__device__ inline void backward_map(const BatchNormArguments& n,
                                    const Gradient& gradient,
                                    const float* dweight, const float* dbias,
                                    const float* all_rows, Vector* dx) {
  const Place p = place(n.vectors);
  const Normal normal(n, p.vector);
  const float count = all_rows ? *all_rows : static_cast<float>(n.rows);
  float flat[kWidth], slope[kWidth];
  inverse_deviations(n, p.vector, slope);
  for (int i = 0; i < kWidth; ++i) {
    const int channel = p.vector * kWidth + i;
    flat[i] = -normal.scale[i] * (dbias[channel] / count);
    slope[i] *= -normal.scale[i] * (dweight[channel] / count);
  }
  gradient.for_each(
      p, n, {},
      [&](Row row, float(&d)[kWidth], const Vector& x, const Vector&) {
        float v[kWidth];
        read(x, v);
        for (int i = 0; i < kWidth; ++i) {
          const float distance = v[i] - normal.center[i];
          if (!Gradient::kIsCut && n.relu && normal.of(distance, i) <= 0)
            d[i] = 0;
          d[i] = fmaf(d[i], normal.scale[i], fmaf(distance, slope[i], flat[i]));
        }
        dx[row * n.vectors + p.vector] = packed(d);
      });
}

KERNEL void __launch_bounds__(kMappingThreads)
    batch_norm_gradient(BatchNormArguments n, const Vector* dy,
                        const float* dweight, const float* dbias,
                        const float* all_rows, Vector* dx) {
  backward_map(n, DenseGradient<4>{dy}, dweight, dbias, all_rows, dx);
}
