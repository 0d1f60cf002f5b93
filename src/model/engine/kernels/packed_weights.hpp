// Weights on their way into the kernels' form, and the sums of their gradients
// on the way back.
//
// The multiply kernels make 32 outputs at once and walk along the sum, so
// weights are stored as [outputs / 32][along the sum][32]: each step reads 32
// neighbors. With bf16 pairs a unit holds the weights of two inputs, the first
// in the low half.
#pragma once

#include "panel.hpp"

namespace chexnet {
namespace {

// to[i][j] = from[j][i] for i and j below 4.
CHEXNET_INLINE void turn(const float* from, int64_t from_step, float* to,
                         int64_t to_step) {
  using Four = float __attribute__((vector_size(16)));
  Four rows[4];
  for (int j = 0; j < 4; ++j)
    std::memcpy(&rows[j], from + j * from_step, sizeof(Four));
  const Four a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5),
             b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5),
             c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7),
             d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  const Four turned[4] = {__builtin_shufflevector(a, b, 0, 1, 4, 5),
                          __builtin_shufflevector(a, b, 2, 3, 6, 7),
                          __builtin_shufflevector(c, d, 0, 1, 4, 5),
                          __builtin_shufflevector(c, d, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i)
    std::memcpy(to + i * to_step, &turned[i], sizeof(Four));
}
CHEXNET_INLINE void turn(const double* from, int64_t from_step, double* to,
                         int64_t to_step) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) to[i * to_step + j] = from[j * from_step + i];
}

template <class S, bool Pair>
struct Weights {
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;
  static constexpr int kPair = Pair ? 2 : 1;

  // 32 outputs are neighbors.
  static void pack_rows(const A* from, int64_t input_step, int inputs, A* to) {
    for (int k = 0; k < inputs; k += kPair, to += kOutputs) {
      const A* row = from + k * input_step;
      for (int o = 0; o < kOutputs; o += L) {
        if constexpr (Pair)
          store_pairs(to + o, bf16_bits(load(row + o)) |
                                  bf16_bits(load(row + input_step + o)) << 16);
        else
          store(to + o, load(row + o));
      }
    }
  }

  // Units of 16 inputs of an output.
  static CHEXNET_INLINE void make_units(const A* w, int64_t input_step,
                                        A* units) {
    alignas(64) A gathered[kBlock];
    if (input_step != 1) {
      for (int k = 0; k < kBlock; ++k) gathered[k] = w[k * input_step];
      w = gathered;
    }
    for (int k = 0; k < kBlock; k += L) {
      if constexpr (Pair)
        store(reinterpret_cast<Bf16*>(units) + k, load(w + k));
      else
        store(units + k, load(w + k));
    }
  }
  // An output's units are made side by side, and then turned.
  static void pack_turned(const A* from, int64_t output_step,
                          int64_t input_step, int inputs, A* to) {
    constexpr int kUnits = kBlock / kPair;
    alignas(64) A units[4][kBlock];
    for (int k = 0; k < inputs; k += kBlock, to += kUnits * kOutputs)
      for (int o = 0; o < kOutputs; o += 4) {
        for (int i = 0; i < 4; ++i)
          make_units(from + k * input_step + (o + i) * output_step, input_step,
                     units[i]);
        for (int u = 0; u < kUnits; u += 4)
          turn(units[0] + u, kBlock, to + u * kOutputs + o, kOutputs);
      }
  }

  static void pack(const WeightMatrix<A>& from, int first_output, int first,
                   int last, A* to) {
    const A* source =
        from.values + first_output * from.output_step + first * from.input_step;
    to += static_cast<int64_t>(first / kPair) * kOutputs;
    if (from.output_step == 1)
      pack_rows(source, from.input_step, last - first, to);
    else
      pack_turned(source, from.output_step, from.input_step, last - first, to);
  }

  static void add_parts(const A* parts, int64_t part_step, int count, int64_t n,
                        bool add, A* to) {
    for (int64_t i = 0; i < n; i += L) {
      Vec<A> sum = add ? load(to + i) : Vec<A>{};
      for (int p = 0; p < count; ++p) sum += load(parts + p * part_step + i);
      store(to + i, sum);
    }
  }

  // Of the sums of 16 kernels, [taps or frequencies][16], all parts together.
  // The next 16 kernels' are prefetched meanwhile.
  template <int Count>
  static CHEXNET_INLINE void total(const A* sums, const int64_t* offsets,
                                   int64_t part_step, int parts,
                                   A (&totals)[Count][kBlock]) {
    for (int e = 0; e < Count; ++e)
      for (int c = 0; c < kBlock; c += L) {
        const A* from = sums + offsets[e] + c;
        Vec<A> sum = {};
        for (int p = 0; p < parts; ++p) {
          sum += load(from + p * part_step);
          __builtin_prefetch(from + p * part_step + kBlock, 0, 2);
        }
        store(&totals[e][c], sum);
      }
  }
  static CHEXNET_INLINE void put_kernels(const A (&g)[9][kBlock], bool add,
                                         A* to) {
    for (int c = 0; c < kBlock; ++c)
      for (int tap = 0; tap < 9; ++tap, ++to)
        *to = add ? *to + g[tap][c] : g[tap][c];
  }
  static void kernel_gradients(const A* sums, const int64_t* offsets,
                               int64_t part_step, int parts, bool add, A* to) {
    alignas(64) A g[9][kBlock];
    total(sums, offsets, part_step, parts, g);
    put_kernels(g, add, to);
  }
};

// Winograd's form of 3x3 kernels, U = G g Gt, and the way back of their
// gradients, dg = Gt dU G. All in double, rounded once.
template <class S, int M>
struct WinogradWeights {
  using A = Accumulator<S>;
  using D = Vec<double>;
  static constexpr int kSide = M + 2, kWide = kLanes<double>;
  // F(4x4,3x3), for the points 0, +-a, +-b, infinity (winograd.hpp): row p of G
  // is (1, p, p^2) / N_p, where N_p is the product of p's distances to the
  // other finite points: 2 a^2 (a^2 - b^2) and 2 b^2 (b^2 - a^2).
  static constexpr double kA = 0.70710678118654752440, kB = 2 * kA,
                          kNear = 1 / -1.5, kFar = 1 / 6.0;

  static CHEXNET_INLINE D scaled(double by, D v) { return splat(by) * v; }
  static CHEXNET_INLINE D plus(D v, double by, D w) {
    return fused(splat(by), w, v);
  }

  // G over 3 values.
  static CHEXNET_INLINE void transform(const D (&g)[3], D (&out)[kSide]) {
    out[0] = g[0];
    if constexpr (M == 2) {  // for the points 0, 1, -1, infinity
      const D even = scaled(0.5, g[0] + g[2]);
      out[1] = plus(even, 0.5, g[1]);
      out[2] = plus(even, -0.5, g[1]);
    } else {
      const D near = plus(scaled(kNear, g[0]), kNear / 2, g[2]),
              far = plus(scaled(kFar, g[0]), 2 * kFar, g[2]);
      out[1] = plus(near, kA * kNear, g[1]);
      out[2] = plus(near, -kA * kNear, g[1]);
      out[3] = plus(far, kB * kFar, g[1]);
      out[4] = plus(far, -kB * kFar, g[1]);
    }
    out[kSide - 1] = g[2];
  }
  // Gt over 6 values.
  static CHEXNET_INLINE void transform_back(const D (&u)[6], D (&out)[3]) {
    const D near = u[1] + u[2], far = u[3] + u[4];
    out[0] = plus(plus(u[0], kNear, near), kFar, far);
    out[1] = plus(scaled(kA * kNear, u[1] - u[2]), kB * kFar, u[3] - u[4]);
    out[2] = plus(plus(u[5], kNear / 2, near), 2 * kFar, far);
  }

  // Frequencies often lie in the same set of a cache, so this stores whole
  // lines.
  static void pack(const WeightMatrix<A>& from, int first_output, int first,
                   int last, bool flipped, int64_t frequency_step, A* to) {
    alignas(64) A g[9][kOutputs], u[kSide * kSide][kOutputs];
    // Turned by 180 degrees, a kernel's taps come in the opposite order.
    const int first_tap = flipped ? 8 : 0, step = flipped ? -1 : 1;
    for (int k = first; k < last; ++k) {
      const A* kernel =
          from.values + first_output * from.output_step + k * from.input_step;
      for (int o = 0; o < kOutputs; ++o, kernel += from.output_step)
        for (int tap = 0; tap < 9; ++tap)
          g[tap][o] = kernel[first_tap + step * tap];
      for (int o = 0; o < kOutputs; o += kWide) {
        D half[3][kSide];  // [x][y]
        for (int x = 0; x < 3; ++x)
          transform({load_wide(g[x] + o), load_wide(g[3 + x] + o),
                     load_wide(g[6 + x] + o)},
                    half[x]);
        for (int y = 0; y < kSide; ++y) {
          D row[kSide];
          transform({half[0][y], half[1][y], half[2][y]}, row);
          for (int x = 0; x < kSide; ++x)
            store_narrow(u[y * kSide + x] + o, row[x]);
        }
      }
      for (int f = 0; f < kSide * kSide; ++f)
        for (int o = 0; o < kOutputs; o += kLanes<A>)
          store(to + f * frequency_step + int64_t{k} * kOutputs + o,
                load(u[f] + o));
    }
  }

  static void kernel_gradients(const A* sums, const int64_t* offsets,
                               int64_t part_step, int parts, bool add, A* to) {
    static_assert(M == 4, "backward takes F(4x4,3x3)");
    alignas(64) A u[36][kBlock], g[9][kBlock];
    Weights<S, false>::total(sums, offsets, part_step, parts, u);
    for (int c = 0; c < kBlock; c += kWide) {
      D half[6][3];  // [x][tap's row]
      for (int x = 0; x < 6; ++x) {
        D column[6];
        for (int y = 0; y < 6; ++y) column[y] = load_wide(u[6 * y + x] + c);
        transform_back(column, half[x]);
      }
      for (int y = 0; y < 3; ++y) {
        D row[3];
        transform_back({half[0][y], half[1][y], half[2][y], half[3][y],
                        half[4][y], half[5][y]},
                       row);
        for (int x = 0; x < 3; ++x) store_narrow(g[3 * y + x] + c, row[x]);
      }
    }
    Weights<S, false>::put_kernels(g, add, to);
  }
};

}  // namespace
}  // namespace chexnet
