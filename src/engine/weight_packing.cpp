#include "weight_packing.hpp"

#include <cassert>

#include "chexnet/comm/half.hpp"
#include "chexnet/engine/kernels.hpp"

// The multiply kernels make 32 outputs at once and walk along the sum, so
// weights are stored as [outputs / 32][along the sum][32]: each step reads 32
// neighbors. With bf16 pairs a unit holds the weights of two inputs, the first
// in the low half.
namespace chexnet {

template <class A>
void pack_block(const WeightMatrix<A>& from, int first_output, int first,
                int last, int pair, A* to) {
  assert(first % pair == 0 && (last - first) % pair == 0);
  const A* source = from.values + first_output * from.output_step;
  to += static_cast<int64_t>(first / pair) * kOutputs;
  if (pair == 1) {
    for (int k = first; k < last; ++k, to += kOutputs)
      for (int o = 0; o < kOutputs; ++o)
        to[o] = source[k * from.input_step + o * from.output_step];
    return;
  }
  if constexpr (sizeof(A) == 4) {
    for (int k = first; k < last; k += 2, to += kOutputs)
      for (int o = 0; o < kOutputs; ++o) {
        const A* w = source + k * from.input_step + o * from.output_step;
        to[o] = bf16_pair(w[0], w[from.input_step]);
      }
  }
}

namespace {

// G of F(2x2,3x3), for the points 0, 1, -1, infinity.
constexpr double kTransform2[4][3] = {
    {1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
// G of F(4x4,3x3), for the points 0, +-a, +-b, infinity (kernels/winograd.hpp):
// row p is (1, p, p^2) / N_p, where N_p is the product of p's distances to the
// other finite points.
constexpr double kA = 0.70710678118654752440, kB = 2 * kA;
// 2 a^2 (a^2 - b^2) and 2 b^2 (b^2 - a^2).
constexpr double kNear = -1.5, kFar = 6;
constexpr double kTransform4[6][3] = {{1, 0, 0},
                                      {1 / kNear, kA / kNear, 0.5 / kNear},
                                      {1 / kNear, -kA / kNear, 0.5 / kNear},
                                      {1 / kFar, kB / kFar, 2 / kFar},
                                      {1 / kFar, -kB / kFar, 2 / kFar},
                                      {0, 0, 1}};

// The 32 kernels of a block side by side, so that each line of arithmetic is
// one loop over lanes. In double, rounded once.
using Lanes = double[kOutputs];

template <class A, int Side>
void pack_as(const double (&transform)[Side][3], const WeightMatrix<A>& from,
             int first_output, int first, int last, bool flipped,
             int64_t frequency_step, A* to) {
  Lanes g[9], half[3 * Side];  // half[y][x] of Side x 3
  for (int k = first; k < last; ++k) {
    for (int o = 0; o < kOutputs; ++o) {
      const A* w = from.values + (first_output + o) * from.output_step +
                   k * from.input_step;
      for (int tap = 0; tap < 9; ++tap) g[tap][o] = w[flipped ? 8 - tap : tap];
    }
    for (int i = 0; i < 3 * Side; ++i) {
      const double* t = transform[i / 3];
      const int x = i % 3;
      for (int o = 0; o < kOutputs; ++o)
        half[i][o] = t[0] * g[x][o] + t[1] * g[3 + x][o] + t[2] * g[6 + x][o];
    }
    for (int f = 0; f < Side * Side; ++f) {
      const double* t = transform[f % Side];
      const Lanes* h = half + int64_t{f / Side} * 3;
      A* u = to + f * frequency_step + int64_t{k} * kOutputs;
      for (int o = 0; o < kOutputs; ++o)
        u[o] = static_cast<A>(t[0] * h[0][o] + t[1] * h[1][o] + t[2] * h[2][o]);
    }
  }
}

}  // namespace

template <class A>
void pack_winograd_block(int side, const WeightMatrix<A>& from,
                         int first_output, int first, int last, bool flipped,
                         int64_t frequency_step, A* to) {
  assert(side == 2 || side == 4);
  if (side == 2)
    pack_as(kTransform2, from, first_output, first, last, flipped,
            frequency_step, to);
  else
    pack_as(kTransform4, from, first_output, first, last, flipped,
            frequency_step, to);
}

template <class A>
void winograd_kernel_gradients(const A (&u)[36][16], A (&g)[9][16]) {
  double half[3][6][16] = {};
  for (int y = 0; y < 3; ++y)
    for (int f = 0; f < 36; ++f)
      for (int i = 0; i < 16; ++i)
        half[y][f % 6][i] += kTransform4[f / 6][y] * u[f][i];
  for (int tap = 0; tap < 9; ++tap) {
    double sum[16] = {};
    for (int x = 0; x < 6; ++x)
      for (int i = 0; i < 16; ++i)
        sum[i] += kTransform4[x][tap % 3] * half[tap / 3][x][i];
    for (int i = 0; i < 16; ++i) g[tap][i] = static_cast<A>(sum[i]);
  }
}

template void pack_block(const WeightMatrix<float>&, int, int, int, int,
                         float*);
template void pack_block(const WeightMatrix<double>&, int, int, int, int,
                         double*);
template void pack_winograd_block(int, const WeightMatrix<float>&, int, int,
                                  int, bool, int64_t, float*);
template void pack_winograd_block(int, const WeightMatrix<double>&, int, int,
                                  int, bool, int64_t, double*);
template void winograd_kernel_gradients(const float (&)[36][16],
                                        float (&)[9][16]);
template void winograd_kernel_gradients(const double (&)[36][16],
                                        double (&)[9][16]);

}  // namespace chexnet
