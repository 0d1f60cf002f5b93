#include "weight_packing.hpp"

#include <cassert>
#include <cstring>
#include <type_traits>

#include "chexnet/comm/half.hpp"
#include "chexnet/engine/kernels.hpp"

// The multiply kernels make 32 outputs at once and walk along the sum, so
// weights are stored as [outputs / 32][along the sum][32]: each step reads 32
// neighbors. With bf16 pairs a unit holds the weights of two inputs, the first
// in the low half.
namespace chexnet {

namespace {

// Units of one input, or two, of an output whose weights begin at `w`.
template <int Pair, class A>
A unit_at(const A* w, int64_t input_step) {
  if constexpr (Pair == 1)
    return w[0];
  else
    return bf16_pair(w[0], w[input_step]);
}

using Four = float __attribute__((vector_size(16)));

// to[i][j] = from[j][i] for i and j below 4.
void turn(const float* from, int64_t from_step, float* to, int64_t to_step) {
  Four rows[4];
  for (int j = 0; j < 4; ++j)
    std::memcpy(&rows[j], from + j * from_step, sizeof(Four));
  for (int half = 0; half < 2; ++half) {
    const Four a = half == 0
                       ? __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5)
                       : __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    const Four b = half == 0
                       ? __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5)
                       : __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    const Four even = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    const Four odd = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    std::memcpy(to + int64_t{2} * half * to_step, &even, sizeof(Four));
    std::memcpy(to + (int64_t{2} * half + 1) * to_step, &odd, sizeof(Four));
  }
}

template <int Pair, class A>
void pack_as(const A* from, int64_t output_step, int64_t input_step, int inputs,
             A* to) {
  for (int k = 0; k < inputs; k += Pair, to += kOutputs)
    for (int o = 0; o < kOutputs; ++o)
      to[o] =
          unit_at<Pair>(from + k * input_step + o * output_step, input_step);
}

// An output's inputs are neighbors: its units are made side by side, and then
// turned.
template <int Pair>
void pack_neighbors(const float* from, int64_t output_step, int inputs,
                    float* to) {
  constexpr int kUnits = 4;
  float units[4][kUnits];
  for (int k = 0; k < inputs;
       k += kUnits * Pair, to += int64_t{kUnits} * kOutputs)
    for (int o = 0; o < kOutputs; o += 4) {
      for (int i = 0; i < 4; ++i)
        for (int u = 0; u < kUnits; ++u)
          units[i][u] = unit_at<Pair>(
              from + k + int64_t{u} * Pair + (o + i) * output_step, 1);
      turn(units[0], kUnits, to + o, kOutputs);
    }
}

template <int Pair, class A>
void pack_paired(const A* from, const WeightMatrix<A>& like, int inputs,
                 A* to) {
  if (like.output_step == 1)  // one loop over neighbors
    return pack_as<Pair>(from, 1, like.input_step, inputs, to);
  if constexpr (std::is_same_v<A, float>)
    if (like.input_step == 1 && inputs % (4 * Pair) == 0)
      return pack_neighbors<Pair>(from, like.output_step, inputs, to);
  pack_as<Pair>(from, like.output_step, like.input_step, inputs, to);
}

}  // namespace

template <class A>
void pack_block(const WeightMatrix<A>& from, int first_output, int first,
                int last, int pair, A* to) {
  assert(first % pair == 0 && (last - first) % pair == 0);
  const A* source =
      from.values + first_output * from.output_step + first * from.input_step;
  to += static_cast<int64_t>(first / pair) * kOutputs;
  if (pair == 1) return pack_paired<1>(source, from, last - first, to);
  if constexpr (sizeof(A) == 4) pack_paired<2>(source, from, last - first, to);
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
void pack_transformed(const double (&transform)[Side][3],
                      const WeightMatrix<A>& from, int first_output, int first,
                      int last, bool flipped, int64_t frequency_step, A* to) {
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
    pack_transformed(kTransform2, from, first_output, first, last, flipped,
                     frequency_step, to);
  else
    pack_transformed(kTransform4, from, first_output, first, last, flipped,
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
