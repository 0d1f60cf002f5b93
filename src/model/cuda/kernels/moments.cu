// Statistics of all ranks' pixels from each rank's; a thread has one channel.
// After vectors.cu.

// `all` [ranks][2 * channels + 1]: means, variances and the number of pixels of
// each rank, in rank order and in double, as in comm/moments.hpp. To them: mean,
// variance, and the number of all pixels.
KERNEL void merge_moments(const double* all, int ranks, int channels,
                          float* mean, float* var, float* pixels) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (channel >= channels) return;
  const long long apart = 2LL * channels + 1;
  double count = 0, center = 0, squares = 0;
  for (int r = 0; r < ranks; ++r) {
    const double* const rank = all + r * apart;
    count += rank[2 * channels];
    center += rank[channel] * rank[2 * channels];
  }
  center /= count;
  for (int r = 0; r < ranks; ++r) {
    const double* const rank = all + r * apart;
    const double away = rank[channel] - center;
    squares += (rank[channels + channel] + away * away) * rank[2 * channels];
  }
  mean[channel] = static_cast<float>(center);
  var[channel] = static_cast<float>(squares / count);
  if (channel == 0) *pixels = static_cast<float>(count);
}
