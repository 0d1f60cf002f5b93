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

// The 32 kernels of a block side by side, so that each line of arithmetic is
// one loop over lanes.
template <class A>
using Lanes = A[kOutputs];

// G times a column: a, (a + b + c) / 2, (a - b + c) / 2, c.
template <class A>
void kernel_transform(const Lanes<A>& a, const Lanes<A>& b, const Lanes<A>& c,
                      Lanes<A>* out, ptrdiff_t step) {
  constexpr A kHalf = A(0.5);
  for (int o = 0; o < kOutputs; ++o) {
    out[0][o] = a[o];
    out[step][o] = kHalf * (a[o] + b[o] + c[o]);
    out[2 * step][o] = kHalf * (a[o] - b[o] + c[o]);
    out[3 * step][o] = c[o];
  }
}

}  // namespace

template <class A>
void pack_winograd_block(const WeightMatrix<A>& from, int first_output,
                         int first, int last, bool flipped,
                         int64_t frequency_step, A* to) {
  Lanes<A> g[9], half[12],
      u[16];  // g[y][x]; half[y][x] of 4 x 3; u[y][x] of 4 x 4
  for (int k = first; k < last; ++k) {
    for (int o = 0; o < kOutputs; ++o) {
      const A* w = from.values + (first_output + o) * from.output_step +
                   k * from.input_step;
      for (int tap = 0; tap < 9; ++tap) g[tap][o] = w[flipped ? 8 - tap : tap];
    }
    for (int x = 0; x < 3; ++x)
      kernel_transform<A>(g[x], g[3 + x], g[6 + x], half + x, 3);
    for (int y = 0; y < 4; ++y)
      kernel_transform<A>(half[3 * y], half[3 * y + 1], half[3 * y + 2],
                          u + 4 * y, 1);
    for (int f = 0; f < 16; ++f)
      std::copy_n(u[f], kOutputs,
                  to + f * frequency_step + int64_t{k} * kOutputs);
  }
}

template <class A>
void pack_winograd4_block(const WeightMatrix<A>& from, int first_output,
                          int first, int last, int64_t frequency_step, A* to) {
  // G for the points 0, +-a, +-b, infinity (kernels/winograd4.hpp): row p is
  // (1, p, p^2) / N_p, where N_p is the product of p's distances to the other
  // finite points.
  constexpr double kA = 0.70710678118654752440, kB = 2 * kA;
  // 2 a^2 (a^2 - b^2) and 2 b^2 (b^2 - a^2).
  constexpr double kNear = -1.5, kFar = 6;
  constexpr double kTransform[6][3] = {{1, 0, 0},
                                       {1 / kNear, kA / kNear, 0.5 / kNear},
                                       {1 / kNear, -kA / kNear, 0.5 / kNear},
                                       {1 / kFar, kB / kFar, 2 / kFar},
                                       {1 / kFar, -kB / kFar, 2 / kFar},
                                       {0, 0, 1}};
  // In double, rounded once.
  Lanes<double> g[9], half[18];
  for (int k = first; k < last; ++k) {
    for (int o = 0; o < kOutputs; ++o) {
      const A* w = from.values + (first_output + o) * from.output_step +
                   k * from.input_step;
      for (int tap = 0; tap < 9; ++tap) g[tap][o] = w[tap];
    }
    for (int i = 0; i < 18; ++i) {
      const double* t = kTransform[i / 3];
      const int x = i % 3;
      for (int o = 0; o < kOutputs; ++o)
        half[i][o] = t[0] * g[x][o] + t[1] * g[3 + x][o] + t[2] * g[6 + x][o];
    }
    for (int f = 0; f < kWinograd4Frequencies; ++f) {
      const double* t = kTransform[f % 6];
      const Lanes<double>* h = half + int64_t{f / 6} * 3;
      A* u = to + f * frequency_step + int64_t{k} * kOutputs;
      for (int o = 0; o < kOutputs; ++o)
        u[o] = static_cast<A>(t[0] * h[0][o] + t[1] * h[1][o] + t[2] * h[2][o]);
    }
  }
}

template <class A>
void winograd_kernel_gradients(const A (&u)[16][16], A (&g)[9][16]) {
  constexpr A kHalf = A(0.5);
  // Gt times a column: a + (b + c) / 2, (b - c) / 2, (b + c) / 2 + d.
  const auto transform = [](const A* a, const A* b, const A* c, const A* d,
                            A* out, int step) {
    for (int i = 0; i < 16; ++i) {
      const A sum = kHalf * (b[i] + c[i]);
      out[i] = a[i] + sum;
      out[step * 16 + i] = kHalf * (b[i] - c[i]);
      out[2 * step * 16 + i] = sum + d[i];
    }
  };
  A half[12][16];  // 3 x 4
  for (int x = 0; x < 4; ++x)
    transform(u[x], u[4 + x], u[8 + x], u[12 + x], half[x], 4);
  for (int y = 0; y < 3; ++y)
    transform(half[4 * y], half[4 * y + 1], half[4 * y + 2], half[4 * y + 3],
              g[3 * y], 1);
}

template void pack_block(const WeightMatrix<float>&, int, int, int, int,
                         float*);
template void pack_block(const WeightMatrix<double>&, int, int, int, int,
                         double*);
template void pack_winograd_block(const WeightMatrix<float>&, int, int, int,
                                  bool, int64_t, float*);
template void pack_winograd_block(const WeightMatrix<double>&, int, int, int,
                                  bool, int64_t, double*);

template void pack_winograd4_block(const WeightMatrix<float>&, int, int, int,
                                   int64_t, float*);
template void pack_winograd4_block(const WeightMatrix<double>&, int, int, int,
                                   int64_t, double*);

template void winograd_kernel_gradients(const float (&)[16][16],
                                        float (&)[9][16]);
template void winograd_kernel_gradients(const double (&)[16][16],
                                        double (&)[9][16]);

}  // namespace chexnet
