// BatchNorm, ReLU and the pooling after it in one pass, so that the map before
// it is pooled, and its gradient, are never in memory. After batch_norm.cu.
//
// Windows are two pixels apart, so both ways work by tiles of 2x2 pixels, the
// first of them at (2y, 2x):
//
//   average   window (y, x) is tile (y, x). A last odd row or column is in a
//             tile, but in no window
//   max       window (y, x) is of 3x3 pixels around the tile's first. So a
//             tile's pixels are in windows (y, x) to (y + 1, x + 1)
//
// Where place() speaks of a thread's row, here it is a window or a tile.

struct Tile {
  int image, y, x;
};

__device__ inline Tile tile_of(Row at, int height, int width) {
  Tile t;
  t.x = static_cast<int>(at % width);
  at /= width;
  t.y = static_cast<int>(at % height);
  t.image = static_cast<int>(at / height);
  return t;
}

// Of a pixel in a map, or a window.
__device__ inline Row row_of(int image, int y, int x, int height, int width) {
  return (image * height + y) * width + x;
}

// One byte for each element of a vector: which of its window's pixels it is,
// row by row; the first of equal ones, or the last NaN, as in LibTorch.
// kNoArgmax where ReLU cut all of them.
constexpr int kNoArgmax = 9;
struct alignas(kWidth) Argmax {
  unsigned int words[kWidth / 4];
};
__device__ inline int argmax_at(const Argmax& argmax, int i) {
  return static_cast<int>(argmax.words[i / 4] >> i % 4 * 8 & 255U);
}

// y = ReLU(BatchNorm(x)), in elements' digits.
__device__ inline void activate(const Normal& normal, const Vector& x,
                                float (&y)[kWidth]) {
  read(x, y);
  for (int i = 0; i < kWidth; ++i)
    y[i] = relu(normal.of(y[i] - normal.center[i], i));
  read(packed(y), y);
}

__device__ inline Row windows_of(const PoolShape& shape) {
  return row_of(shape.images, 0, 0, shape.out_height, shape.out_width);
}

KERNEL void __launch_bounds__(kMappingThreads)
    batch_norm_max_pool(BatchNormArguments n, PoolShape shape,
                        KeptChannels kept, Vector* y, Argmax* argmax) {
  const Place p = place(n.vectors);
  keep(kept, n, p);
  const Normal normal(n, p.vector);
  for (Row at = p.row; at < windows_of(shape); at += p.rows_apart) {
    const Tile t = tile_of(at, shape.out_height, shape.out_width);
    const Row first =
        row_of(t.image, 2 * t.y, 2 * t.x, shape.height, shape.width);
    Vector window[9];
    bool inside[9];
    UNROLL(9)
    for (int pixel = 0; pixel < 9; ++pixel) {
      const int down = pixel / 3 - 1, right = pixel % 3 - 1;
      inside[pixel] = 2 * t.y + down >= 0 && 2 * t.y + down < shape.height &&
                    2 * t.x + right >= 0 && 2 * t.x + right < shape.width;
      if (inside[pixel])
        window[pixel] = vectors_of(
            n.x)[(first + down * shape.width + right) * n.x_apart + p.vector];
    }
    float best[kWidth] = {};
    unsigned int where[kWidth];
    for (int i = 0; i < kWidth; ++i) where[i] = kNoArgmax;
    UNROLL(9)
    for (int pixel = 0; pixel < 9; ++pixel) {
      if (!inside[pixel]) continue;
      float v[kWidth];
      activate(normal, window[pixel], v);
      for (int i = 0; i < kWidth; ++i)
        if (v[i] > best[i] || v[i] != v[i]) {
          best[i] = v[i];
          where[i] = pixel;
        }
    }
    y[at * n.vectors + p.vector] = packed(best);
    Argmax bytes = {};
    for (int i = 0; i < kWidth; ++i)
      bytes.words[i / 4] |= where[i] << i % 4 * 8;
    argmax[at * n.vectors + p.vector] = bytes;
  }
}

KERNEL void __launch_bounds__(kMappingThreads)
    batch_norm_average_pool(BatchNormArguments n, PoolShape shape,
                            KeptChannels kept, Vector* y) {
  const Place p = place(n.vectors);
  keep(kept, n, p);
  const Normal normal(n, p.vector);
  for (Row at = p.row; at < windows_of(shape); at += p.rows_apart) {
    const Tile t = tile_of(at, shape.out_height, shape.out_width);
    const Row first =
        row_of(t.image, 2 * t.y, 2 * t.x, shape.height, shape.width);
    Vector window[4];
    UNROLL(4)
    for (int pixel = 0; pixel < 4; ++pixel)
      window[pixel] = vectors_of(
          n.x)[(first + pixel / 2 * shape.width + pixel % 2) * n.x_apart +
               p.vector];
    float sum[kWidth] = {};
    UNROLL(4)
    for (int pixel = 0; pixel < 4; ++pixel) {
      float v[kWidth];
      activate(normal, window[pixel], v);
      for (int i = 0; i < kWidth; ++i) sum[i] += v[i];
    }
    for (int i = 0; i < kWidth; ++i) sum[i] *= 0.25F;
    y[at * n.vectors + p.vector] = packed(sum);
  }
}

// The pixels of a tile that are in the map, by their numbers 0 to 3.
struct Pixels {
  Row first;  // the row of pixel 0
  int width;  // of the map
  bool has_right, has_below;
  __device__ inline bool has(int pixel) const {
    return (has_right || pixel % 2 == 0) && (has_below || pixel < 2);
  }
  __device__ inline Row row(int pixel) const {
    return first + pixel / 2 * width + pixel % 2;
  }
};

// each(tile, pixels) for each of the thread's tiles.
template <class Each>
__device__ inline void for_tiles(const Place& p, const PoolShape& shape,
                                 const Each& each) {
  const int height = (shape.height + 1) / 2, width = (shape.width + 1) / 2;
  const Row tiles = row_of(shape.images, 0, 0, height, width);
  for (Row at = p.row; at < tiles; at += p.rows_apart) {
    const Tile t = tile_of(at, height, width);
    each(t, Pixels{row_of(t.image, 2 * t.y, 2 * t.x, shape.height, shape.width),
                   shape.width, 2 * t.x + 1 < shape.width,
                   2 * t.y + 1 < shape.height});
  }
}

// The gradient of the results of batch_norm_max_pool. A pixel takes those of
// the windows that chose it.
struct MaxPoolGradient {
  static constexpr bool kIsCut = true;
  const Vector* dy;
  const Argmax* argmax;
  PoolShape shape;
  template <class Use>
  __device__ inline void for_each(const Place& p, const BatchNormArguments& n,
                                  const WrittenRows&, const Use& use) const {
    for_tiles(p, shape, [&](const Tile& t, const Pixels& pixels) {
      const Row first =
          row_of(t.image, t.y, t.x, shape.out_height, shape.out_width);
      Vector above[4], x[4];
      Argmax where[4];
      UNROLL(4)
      for (int w = 0; w < 4; ++w) {
        above[w] = {};
        where[w] = {};
        if (t.y + w / 2 >= shape.out_height || t.x + w % 2 >= shape.out_width)
          continue;
        const Row at =
            (first + w / 2 * shape.out_width + w % 2) * n.vectors + p.vector;
        above[w] = dy[at];
        where[w] = argmax[at];
      }
      UNROLL(4)
      for (int pixel = 0; pixel < 4; ++pixel)
        if (pixels.has(pixel))
          x[pixel] = vectors_of(n.x)[pixels.row(pixel) * n.x_apart + p.vector];
      // The last first: it is in all windows, which are needed ever less.
      UNROLL(4)
      for (int pixel = 3; pixel >= 0; --pixel) {
        if (!pixels.has(pixel)) continue;
        float d[kWidth] = {};
        UNROLL(4)
        for (int w = 0; w < 4; ++w) {
          // From the window's first pixel, which is beyond the tile's.
          const int down = pixel / 2 - w / 2 * 2 + 1,
                    right = pixel % 2 - w % 2 * 2 + 1;
          if (down < 0 || right < 0) continue;
          float of_window[kWidth];
          read(above[w], of_window);
          for (int i = 0; i < kWidth; ++i)
            if (argmax_at(where[w], i) == down * 3 + right)
              d[i] += of_window[i];
        }
        use(pixels.row(pixel), d, x[pixel], Vector{});
      }
    });
  }
};

// The gradient of the results of batch_norm_average_pool.
struct AveragePoolGradient {
  static constexpr bool kIsCut = false;
  const Vector* dy;
  PoolShape shape;
  template <class Use>
  __device__ inline void for_each(const Place& p, const BatchNormArguments& n,
                                  const WrittenRows& sum,
                                  const Use& use) const {
    const Vector* const before = vectors_of(sum.first);
    for_tiles(p, shape, [&](const Tile& t, const Pixels& pixels) {
      const Row window =
          row_of(t.image, t.y, t.x, shape.out_height, shape.out_width);
      Vector above = {}, x[4];
      if (t.y < shape.out_height && t.x < shape.out_width)
        above = dy[window * n.vectors + p.vector];
      UNROLL(4)
      for (int pixel = 0; pixel < 4; ++pixel)
        if (pixels.has(pixel))
          x[pixel] = vectors_of(n.x)[pixels.row(pixel) * n.x_apart + p.vector];
      UNROLL(4)
      for (int pixel = 0; pixel < 4; ++pixel) {
        if (!pixels.has(pixel)) continue;
        float d[kWidth];
        read(above, d);
        for (int i = 0; i < kWidth; ++i) d[i] *= 0.25F;
        const Row row = pixels.row(pixel);
        use(row, d, x[pixel],
            before ? before[row * sum.apart + p.vector] : Vector{});
      }
    });
  }
};

// batch_norm_sums, batch_norm_gradient and batch_norm_add_up of these
// gradients.

KERNEL void __launch_bounds__(kReducingThreads)
    batch_norm_max_pool_sums(BatchNormArguments n, const Vector* dy,
                             const Argmax* argmax, PoolShape shape,
                             PartialSums partial, float* dweight,
                             float* dbias) {
  SHARED(BlockSums, total);
  backward_sums<false>(n, MaxPoolGradient{dy, argmax, shape}, partial, total,
                       dweight, dbias, {});
}

KERNEL void __launch_bounds__(kMappingThreads)
    batch_norm_max_pool_gradient(BatchNormArguments n, const Vector* dy,
                                 const Argmax* argmax, PoolShape shape,
                                 const float* dweight, const float* dbias,
                                 const float* all_rows, Vector* dx) {
  backward_map(n, MaxPoolGradient{dy, argmax, shape}, dweight, dbias, all_rows,
               dx);
}

// One block on each multiprocessor, as all that add up: for more of them the
// compiler would keep fp32 out of registers on sm_70 and sm_90.
KERNEL void __launch_bounds__(kReducingThreads, 1)
    batch_norm_average_pool_add_up(BatchNormArguments n, const Vector* dy,
                                   PoolShape shape, PartialSums partial,
                                   float* dweight, float* dbias, WrittenRows dx,
                                   int adds, PendingCorrections pending) {
  SHARED(BlockSums, total);
  backward_sums<true>(n, AveragePoolGradient{dy, shape}, partial, total,
                      dweight, dbias, {dx, adds, pending});
}
