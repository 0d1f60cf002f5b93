// The multiply-accumulate loops all convolutions end in. Accumulators stay in
// registers: 14 pixels x 2 vectors of outputs where there are 32 of them
// (AVX-512, NEON, SVE), 6 x 2 elsewhere (12 of 16).
#pragma once

#include <algorithm>

#include "kernels.hpp"
#include "simd.hpp"

namespace chexnet {
namespace {

constexpr int kGroup = 14;  // pixels an epilogue handles at once
constexpr int kTileRows = kVectorRegisters == 32 ? 14 : 6;
constexpr int kTileVectors = 2;
constexpr int kHalfGroup = 7;

// sum + a * b; a and b hold bf16 pairs when `Pair`.
template <bool Pair, class V>
CHEXNET_INLINE V multiply_add(V sum, V a, V b) {
#if defined(__AVX512BF16__)
  if constexpr (Pair)
    return (V)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#elif defined(__ARM_FEATURE_SVE)
  if constexpr (Pair)
    return (V)svbfdot_f32((svfloat32_t)sum,
                          svreinterpret_bf16_f32((svfloat32_t)a),
                          svreinterpret_bf16_f32((svfloat32_t)b));
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  if constexpr (Pair)
    return (V)vbfdotq_f32((float32x4_t)sum,
                          vreinterpretq_bf16_f32((float32x4_t)a),
                          vreinterpretq_bf16_f32((float32x4_t)b));
#endif
  return a * b + sum;
}

// Work that is done between the steps of a sum: four times a block. The sums
// leave load and store units idle most of the time.
struct NoWork {
  static constexpr bool kAny = false;
  CHEXNET_INLINE void operator()(int /*block*/, int /*quarter*/) const {}
};

// out[r][32] = sum over blocks of `Block` units; row r's units are at a +
// offsets[block] + r * Step, but from row 7 on at a + offsets[block] + half +
// (r - 7) * Step.
template <class A, bool Pair, int Step, int Rows, class Work = NoWork,
          int Block = kBlock>
__attribute__((noinline)) void multiply_tile(
    const A* __restrict a, const int64_t* __restrict offsets, int blocks,
    const A* __restrict weights, A* __restrict out, const Work work = {},
    int64_t half = int64_t{kHalfGroup} * Step) {
  constexpr int L = kLanes<A>;
  for (int column = 0; column < kOutputs; column += kTileVectors * L) {
    Vec<A> sum[Rows][kTileVectors] = {};
    const A* __restrict b = weights + column;
    for (int block = 0; block < blocks; ++block) {
      // Two bases keep the displacements of 14 rows within one byte.
      const A* __restrict p = a + offsets[block];
      const A* __restrict q = p + half;
#pragma GCC unroll 4
      for (int k = 0; k < Block; ++k) {
        if (Work::kAny && k % 4 == 0 && column == 0) work(block, k / 4);
        const Vec<A> b0 = load(b), b1 = load(b + L);
        b += kOutputs;
#pragma GCC unroll 14
        for (int r = 0; r < Rows; ++r) {
          const Vec<A> v =
              splat(r < kHalfGroup ? p[r * Step + k]
                                   : q[(r - kHalfGroup) * Step + k]);
          sum[r][0] = multiply_add<Pair>(sum[r][0], v, b0);
          sum[r][1] = multiply_add<Pair>(sum[r][1], v, b1);
        }
      }
    }
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      store(out + r * kOutputs + column, sum[r][0]);
      store(out + r * kOutputs + column + L, sum[r][1]);
    }
  }
}

template <class A>
using MultiplyTile = void (*)(const A*, const int64_t*, int, const A*, A*,
                              NoWork, int64_t);

template <class A, bool Pair, int Step, int Block, int... Rows>
MultiplyTile<A> tile_of(int rows, std::integer_sequence<int, Rows...>) {
  static constexpr MultiplyTile<A> kTable[] = {
      multiply_tile<A, Pair, Step, Rows + 1, NoWork, Block>...};
  return kTable[rows - 1];
}

#if defined(__aarch64__)
#define CHEXNET_VECTOR_REGISTER "w"
#else
#define CHEXNET_VECTOR_REGISTER "v"
#endif

// The peak rate of multiplications in registers, for comparison.
// The compiler unrolls loops that count.
template <class A, bool Pair>
double fma_loop(int rounds) {
  constexpr int kSums = kTileRows * kTileVectors;
  Vec<A> sums[kSums] = {}, factors[2] = {};
  // Hides that the values are known and equal, of which the compiler would
  // otherwise make use.
#pragma GCC unroll 28
  // NOLINTNEXTLINE(modernize-loop-convert)
  for (int i = 0; i < kSums; ++i)
    asm volatile("" : "+" CHEXNET_VECTOR_REGISTER(sums[i]));
  for (int r = 0; r < rounds; ++r) {
    asm volatile(""
                 : "+" CHEXNET_VECTOR_REGISTER(factors[0]),
                   "+" CHEXNET_VECTOR_REGISTER(factors[1]));
#pragma GCC unroll 28
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (int i = 0; i < kSums; ++i)
      sums[i] = multiply_add<Pair>(sums[i], factors[0], factors[1]);
  }
#pragma GCC unroll 28
  // NOLINTNEXTLINE(modernize-loop-convert)
  for (int i = 0; i < kSums; ++i)
    asm volatile("" : : CHEXNET_VECTOR_REGISTER(sums[i]));
  return 2.0 * kSums * kLanes<A> * (Pair ? 2 : 1) * rounds;
}

// Cuts a row into nearly equal groups of at most 14 pixels.
template <class Group>
CHEXNET_INLINE void each_row_group(int width, const Group& group) {
  const int groups = (width + kGroup - 1) / kGroup;
  for (int i = 0; i < groups; ++i) {
    const int first = i * width / groups;
    group(first, (i + 1) * width / groups - first);
  }
}

// Any `rows` <= 14.
template <class A, bool Pair, int Step = kBlock, int Block = kBlock>
CHEXNET_INLINE void multiply_group(const A* a, const int64_t* offsets,
                                   int blocks, const A* weights, int rows,
                                   A* out) {
  for (int r = 0; r < rows; r += kTileRows)
    tile_of<A, Pair, Step, Block>(std::min(kTileRows, rows - r),
                                  std::make_integer_sequence<int, kTileRows>())(
        a + r * Step, offsets, blocks, weights, out + r * kOutputs, {},
        int64_t{kHalfGroup} * Step);
}

// Two rows of a map, `apart`, of at most 7 pixels each: into out[0] .. and
// out[7] .. . Outputs beyond narrower rows are undefined.
constexpr bool kTwoRowsAtOnce = kTileRows == 2 * kHalfGroup;
template <class A, bool Pair, int Step>
CHEXNET_INLINE void multiply_two_rows(const A* a, int64_t apart,
                                      const int64_t* offsets, int blocks,
                                      const A* weights, A* out) {
  multiply_tile<A, Pair, Step, 2 * kHalfGroup>(a, offsets, blocks, weights, out,
                                               NoWork{}, apart);
}

// The same with work between the steps of the first rows.
template <class A, bool Pair, class Work>
CHEXNET_INLINE void multiply_group_and(const A* a, const int64_t* offsets,
                                       int blocks, const A* weights, int rows,
                                       A* out, const Work& work) {
  if (rows < kTileRows) {
    for (int block = 0; block < blocks; ++block)
      for (int quarter = 0; quarter < 4; ++quarter) work(block, quarter);
    return multiply_group<A, Pair>(a, offsets, blocks, weights, rows, out);
  }
  multiply_tile<A, Pair, kBlock, kTileRows, Work>(a, offsets, blocks, weights,
                                                  out, work);
  multiply_group<A, Pair>(a + kTileRows * kBlock, offsets, blocks, weights,
                          rows - kTileRows, out + kTileRows * kOutputs);
}

// Offsets of a panel's blocks.
struct BlockOffsets {
  static constexpr int kMost = 2048 / kBlock;
  int64_t values[kMost];
  BlockOffsets(int blocks, int64_t rows) {
    for (int i = 0; i < blocks; ++i) values[i] = i * rows * kBlock;
  }
};

// Prefetches the lines of NextRows in equal portions.
class Prefetcher {
 public:
  Prefetcher(const NextRows& next, int portions)
      : at_(static_cast<const char*>(next.at)),
        pitch_(next.pitch_bytes),
        row_(next.row_bytes) {
    const int64_t lines = next.rows * ((row_ + kLine - 1) / kLine);
    left_ = lines;
    portion_ = (lines + portions - 1) / portions;
  }
  CHEXNET_INLINE void portion() {
    for (int64_t i = 0; i < portion_ && left_ > 0; ++i, --left_) {
      __builtin_prefetch(at_ + in_row_, 0, 2);
      in_row_ += kLine;
      if (in_row_ >= row_) {
        in_row_ = 0;
        at_ += pitch_;
      }
    }
  }

 private:
  static constexpr int64_t kLine = 64;
  const char* at_;
  int64_t pitch_, row_, in_row_ = 0, left_ = 0, portion_ = 0;
};

// w[o][32] (+)= sum over n units of dy[u][o] * y[u][32], kGradientRows outputs
// at once.
constexpr int kGradientRows = kVectorRegisters == 32 ? 8 : 4;
template <class A, bool Pair, bool Add>
__attribute__((noinline)) void gradient_tile(const A* __restrict dy,
                                             const A* __restrict y0,
                                             const A* __restrict y1, int n,
                                             A* __restrict w, int64_t pitch) {
  constexpr int L = kLanes<A>;
  for (int column = 0; column < 2 * kBlock; column += 2 * L) {
    // Two vectors: the two blocks side by side when a vector is a block, else
    // within one block.
    const A* __restrict left =
        L == kBlock ? y0 : (column < kBlock ? y0 : y1) + column % kBlock;
    const A* __restrict right = L == kBlock ? y1 : left + L;
    A* __restrict to = w + column;
    Vec<A> sum[kGradientRows][2] = {};
    if constexpr (Add) {
#pragma GCC unroll 8
      for (int r = 0; r < kGradientRows; ++r) {
        sum[r][0] = load(to + r * pitch);
        sum[r][1] = load(to + r * pitch + L);
      }
    }
#pragma GCC unroll 2
    for (int u = 0; u < n; ++u) {
      const Vec<A> b0 = load(left + u * kBlock), b1 = load(right + u * kBlock);
#pragma GCC unroll 8
      for (int r = 0; r < kGradientRows; ++r) {
        const Vec<A> v = splat(dy[u * kBlock + r]);
        sum[r][0] = multiply_add<Pair>(sum[r][0], v, b0);
        sum[r][1] = multiply_add<Pair>(sum[r][1], v, b1);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kGradientRows; ++r) {
      store(to + r * pitch, sum[r][0]);
      store(to + r * pitch + L, sum[r][1]);
    }
  }
}

// A row of a tile of sums.
template <class A>
CHEXNET_INLINE void prefetch_sums(const A* at) {
  for (int i = 0; i < 2 * kBlock; i += 64 / static_cast<int>(sizeof(A)))
    __builtin_prefetch(at + i, 1);
}

template <class A, bool Pair>
void gradient_tiles(Panel<A> dy, int outputs, Panel<A> y, int channels,
                    int units, A* w, int64_t pitch, bool add,
                    NextRows next = {}, NextRows also_next = {}) {
  const int tiles =
      channels / (2 * kBlock) * ((outputs + kGradientRows - 1) / kGradientRows);
  Prefetcher first(next, tiles), second(also_next, tiles);
  const auto tile =
      add ? gradient_tile<A, Pair, true> : gradient_tile<A, Pair, false>;
  const int64_t block = y.rows * kBlock;
  for (int c = 0; c < channels; c += 2 * kBlock)
    for (int o = 0; o < outputs; o += kGradientRows) {
      first.portion();
      second.portion();
      // The next tile's sums, which may have left L1.
      if (add && o + kGradientRows < outputs)
        for (int r = 0; r < kGradientRows; ++r)
          prefetch_sums(w + (o + kGradientRows + r) * pitch + c);
      tile(dy.units + (o / kBlock) * dy.rows * kBlock + o % kBlock,
           y.units + (c / kBlock) * block, y.units + (c / kBlock + 1) * block,
           units, w + o * pitch + c, pitch);
    }
}

}  // namespace
}  // namespace chexnet
