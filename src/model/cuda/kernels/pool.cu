// Pooling of channels-last maps, and the gradient of a ReLU behind a sum. After
// vectors.cu. A thread has one vector of the result after the other.

struct Pixel {
  int image, y, x, vector;
};

__device__ inline Pixel pixel_of(unsigned int at, const PooledShape& shape) {
  Pixel p;
  p.vector = static_cast<int>(at % shape.vectors);
  at /= shape.vectors;
  p.x = static_cast<int>(at % shape.width);
  at /= shape.width;
  p.y = static_cast<int>(at % shape.height);
  p.image = static_cast<int>(at / shape.height);
  return p;
}

__device__ inline unsigned int index_of(const Pixel& p, int y, int x,
                                        const PooledShape& shape) {
  return ((p.image * shape.height + y) * shape.width + x) * shape.vectors +
         p.vector;
}

__device__ inline unsigned int first_of_thread() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ inline unsigned int step_of_threads() {
  return gridDim.x * blockDim.x;
}

// One byte for each element of a vector.
struct alignas(kWidth) Taps {
  unsigned char of[kWidth];
};

// Windows of 3x3, two apart, one beyond each edge. `taps`: which of its
// window's pixels an element is, row by row; the first of equal ones, or the
// last NaN, as in LibTorch.
KERNEL void __launch_bounds__(256)
    max_pool_forward(const Vector* x, PooledShape in, PooledShape out, unsigned int count,
                     Vector* y, Taps* taps) {
  for (unsigned int at = first_of_thread(); at < count;
       at += step_of_threads()) {
    const Pixel p = pixel_of(at, out);
    float best[kWidth] = {};
    Taps where = {};
    bool first = true;
    UNROLL(9)
    for (int tap = 0; tap < 9; ++tap) {
      const int row = 2 * p.y - 1 + tap / 3, column = 2 * p.x - 1 + tap % 3;
      if (row < 0 || row >= in.height || column < 0 || column >= in.width)
        continue;
      float v[kWidth];
      read(x[index_of(p, row, column, in)], v);
      for (int i = 0; i < kWidth; ++i)
        if (first || v[i] > best[i] || v[i] != v[i]) {
          best[i] = v[i];
          where.of[i] = static_cast<unsigned char>(tap);
        }
      first = false;
    }
    y[at] = written(best);
    taps[at] = where;
  }
}

// A pixel takes the gradients of the windows, four at most, that chose it.
KERNEL void __launch_bounds__(256)
    max_pool_backward(const Vector* dy, const Taps* taps, PooledShape in, PooledShape out,
                      unsigned int count, Vector* dx) {
  for (unsigned int at = first_of_thread(); at < count;
       at += step_of_threads()) {
    const Pixel p = pixel_of(at, in);
    float sum[kWidth] = {};
    for (int y = p.y / 2; y <= (p.y + 1) / 2 && y < out.height; ++y)
      for (int x = p.x / 2; x <= (p.x + 1) / 2 && x < out.width; ++x) {
        const unsigned int window = index_of(p, y, x, out);
        const int tap = (p.y + 1 - 2 * y) * 3 + p.x + 1 - 2 * x;
        const Taps where = taps[window];
        float d[kWidth];
        read(dy[window], d);
        for (int i = 0; i < kWidth; ++i)
          if (where.of[i] == tap) sum[i] += d[i];
      }
    dx[at] = written(sum);
  }
}

// Windows of 2x2, two apart; a last odd row or column is in none.
KERNEL void __launch_bounds__(256)
    average_pool_forward(const Vector* x, PooledShape in, PooledShape out,
                         unsigned int count, Vector* y) {
  for (unsigned int at = first_of_thread(); at < count;
       at += step_of_threads()) {
    const Pixel p = pixel_of(at, out);
    float sum[kWidth] = {};
    UNROLL(4)
    for (int tap = 0; tap < 4; ++tap) {
      float v[kWidth];
      read(x[index_of(p, 2 * p.y + tap / 2, 2 * p.x + tap % 2, in)], v);
      for (int i = 0; i < kWidth; ++i) sum[i] += v[i];
    }
    for (int i = 0; i < kWidth; ++i) sum[i] *= 0.25F;
    y[at] = written(sum);
  }
}

KERNEL void __launch_bounds__(256)
    average_pool_backward(const Vector* dy, PooledShape in, PooledShape out,
                          unsigned int count, Vector* dx) {
  for (unsigned int at = first_of_thread(); at < count;
       at += step_of_threads()) {
    const Pixel p = pixel_of(at, in);
    float d[kWidth] = {};
    if (p.y / 2 < out.height && p.x / 2 < out.width)
      read(dy[index_of(p, p.y / 2, p.x / 2, out)], d);
    for (int i = 0; i < kWidth; ++i) d[i] *= 0.25F;
    dx[at] = written(d);
  }
}

// dx = dy (+ more) where y > 0.
KERNEL void __launch_bounds__(256)
    relu_backward(const Vector* dy, const Vector* more, const Vector* y,
                  unsigned int count, Vector* dx) {
  for (unsigned int at = first_of_thread(); at < count;
       at += step_of_threads()) {
    float d[kWidth], v[kWidth];
    read(dy[at], d);
    if (more) {
      read(more[at], v);
      for (int i = 0; i < kWidth; ++i) d[i] += v[i];
    }
    read(y[at], v);
    for (int i = 0; i < kWidth; ++i)
      if (v[i] <= 0) d[i] = 0;
    dx[at] = written(d);
  }
}
