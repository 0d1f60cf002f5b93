// The gradient of a ReLU after a sum. After vectors.cu. A thread has one vector
// of the result after the other.

// dx = dy (+ residual) where y > 0.
KERNEL void __launch_bounds__(256)
    relu_backward(const Vector* dy, const Vector* residual, const Vector* y,
                  unsigned int count, Vector* dx) {
  for (unsigned int at = blockIdx.x * blockDim.x + threadIdx.x; at < count;
       at += gridDim.x * blockDim.x) {
    float d[kWidth], v[kWidth];
    read(dy[at], d);
    if (residual) {
      read(residual[at], v);
      for (int i = 0; i < kWidth; ++i) d[i] += v[i];
    }
    read(y[at], v);
    for (int i = 0; i < kWidth; ++i)
      if (v[i] <= 0) d[i] = 0;
    dx[at] = packed(d);
  }
}
