// 3x3 convolution by Winograd F(4x4,3x3), for scoring: 36 products for 16
// outputs where F(2x2,3x3) needs 64 and the direct form 144.
//
// The polynomials are evaluated at 0, +-a, +-b and infinity with a = 1/sqrt(2),
// b = sqrt(2). Of all points +-a, +-b these and their neighbors round least,
// and a * b = 1 makes most factors 1: errors are 0.4 of those of the usual
// points 1 and 2, and three times those of F(2x2,3x3).
//
//     Bt = |1  0       -(kA2+kB2)  0        1  0|   At = |1  1   1   1   1  0|
//          |0 -a kB2    -kB2       a        1  0|        |0  a  -a   b  -b  0|
//          |0  a kB2    -kB2      -a        1  0|        |0  kA2  kA2  kB2  kB2
//          0| |0 -b kA2    -kA2       b        1  0|        |0  kA3 -kA3  kB3
//          -kB3 1| |0  b kA2    -kA2      -b        1  0| |0  1        0
//          -(kA2+kB2)  0  1|
//
// G is in weight_packing.cpp.
#pragma once

#include "multiply.hpp"
#include "panel.hpp"

namespace chexnet {
namespace {

template <class S>
struct Winograd4 {
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;
  static constexpr int kTiles = kWinograd4Tiles, kSide = 6;
  static constexpr A kA1 = A(0.70710678118654752440), kB1 = 2 * kA1,
                     kA2 = A(0.5), kB2 = A(2), kA3 = kA1 / 2, kB3 = 2 * kB1,
                     kSum2 = A(2.5);

  struct TileCorner {
    int image, y, x;  // of the tile's first output
  };
  static CHEXNET_INLINE TileCorner corner_of(PaddedImage shape, int tile) {
    const int across = (shape.width + 3) / 4,
              in_image = across * ((shape.height + 3) / 4);
    const int rest = tile % in_image;
    return {tile / in_image, rest / across * 4, rest % across * 4};
  }

  // Bt over six values that are `step` apart.
  static CHEXNET_INLINE void transform(Vec<A>* d, int64_t step) {
    Vec<A>&d0 = d[0], &d1 = d[step], &d2 = d[2 * step], &d3 = d[3 * step],
    &d4 = d[4 * step], &d5 = d[5 * step];
    const Vec<A> first = d4 - d2 * kSum2 + d0, last = d5 - d3 * kSum2 + d1;
    const Vec<A> even_a = d4 - d2 * kB2, odd_a = d3 - d1 * kB2;
    const Vec<A> even_b = d4 - d2 * kA2, odd_b = d3 - d1 * kA2;
    d0 = first;
    d1 = even_a + odd_a * kA1;
    d2 = even_a - odd_a * kA1;
    d3 = even_b + odd_b * kB1;
    d4 = even_b - odd_b * kB1;
    d5 = last;
  }

  static void input(const S* map, int64_t pitch, PaddedImage shape,
                    const S* zeros, int first, int tiles, int channels, A* v) {
    const int64_t frequency = winograd4_step(channels);
    for (int i = 0; i < tiles; ++i) {
      const TileCorner at = corner_of(shape, first + i);
      const S* pixels[kSide * kSide];
      for (int e = 0; e < kSide * kSide; ++e) {
        const int y = at.y - 1 + e / kSide, x = at.x - 1 + e % kSide;
        const bool inside =
            y >= 0 && y < shape.height && x >= 0 && x < shape.width;
        const int64_t pixel =
            (static_cast<int64_t>(at.image) * shape.height + y) * shape.width +
            x;
        pixels[e] = inside ? map + pixel * pitch : zeros;
      }
      for (int c = 0; c < channels; c += L) {
        Vec<A> d[kSide * kSide];
        // What the tile to the right reads and this one does not.
#pragma GCC unroll 36
        for (int e = 0; e < kSide * kSide; ++e)
          if (e % kSide >= 2)
            __builtin_prefetch(pixels[e] + 4 * pitch + c, 0, 2);
#pragma GCC unroll 36
        for (int e = 0; e < kSide * kSide; ++e) d[e] = load(pixels[e] + c);
#pragma GCC unroll 6
        for (int e = 0; e < kSide; ++e) transform(d + e, kSide);
#pragma GCC unroll 6
        for (int e = 0; e < kSide; ++e) transform(d + e * kSide, 1);
#pragma GCC unroll 36
        for (int e = 0; e < kSide * kSide; ++e)
          put_by_channels<S, false>(Panel<A>{v + e * frequency, kTiles}, i, c,
                                    d[e]);
      }
    }
  }

  static void multiply(const A* v, int tiles, int channels, const A* u,
                       int outputs, A* m) {
    const int blocks = channels / kBlock;
    const BlockOffsets offsets(blocks, kTiles);
    for (int f = 0; f < kSide * kSide; ++f)
      for (int o = 0; o < outputs; o += kOutputs)
        each_row_group(tiles, [&](int t, int rows) {
          multiply_group<A, false>(
              v + f * winograd4_step(channels) + t * kBlock, offsets.values,
              blocks, u + (static_cast<int64_t>(f) * outputs + o) * channels,
              rows,
              m + f * winograd4_step(outputs) +
                  (o / kOutputs * kTiles + t) * kOutputs);
        });
  }

  // At over six values.
  static CHEXNET_INLINE void outputs_of(const Vec<A> (&m)[kSide],
                                        Vec<A> (&out)[4]) {
    const Vec<A> sum_a = m[1] + m[2], sum_b = m[3] + m[4];
    const Vec<A> odd_a = m[1] - m[2], odd_b = m[3] - m[4];
    out[0] = m[0] + sum_a + sum_b;
    out[1] = odd_a * kA1 + odd_b * kB1;
    out[2] = sum_a * kA2 + sum_b * kB2;
    out[3] = odd_a * kA3 + odd_b * kB3 + m[5];
  }

  static void output(const A* m, PaddedImage shape, int first, int tiles,
                     int outputs, S* out, int64_t pitch) {
    const int64_t frequency = winograd4_step(outputs);
    for (int i = 0; i < tiles; ++i) {
      const TileCorner at = corner_of(shape, first + i);
      const int64_t corner =
          (static_cast<int64_t>(at.image) * shape.height + at.y) * shape.width +
          at.x;
      for (int o = 0; o < outputs; o += L) {
        const A* from =
            m + (o / kOutputs * kTiles + i) * kOutputs + o % kOutputs;
        Vec<A> half[4][kSide];
#pragma GCC unroll 6
        for (int x = 0; x < kSide; ++x) {
          Vec<A> column[kSide], four[4];
#pragma GCC unroll 6
          for (int y = 0; y < kSide; ++y)
            column[y] = load(from + (kSide * y + x) * frequency);
          outputs_of(column, four);
#pragma GCC unroll 4
          for (int y = 0; y < 4; ++y) half[y][x] = four[y];
        }
#pragma GCC unroll 4
        for (int y = 0; y < 4; ++y) {
          if (at.y + y >= shape.height) continue;
          Vec<A> four[4];
          outputs_of(half[y], four);
          S* to = out + (corner + int64_t{y} * shape.width) * pitch + o;
#pragma GCC unroll 4
          for (int x = 0; x < 4; ++x)
            if (at.x + x < shape.width) store(to + x * pitch, four[x]);
        }
      }
    }
  }
};

}  // namespace
}  // namespace chexnet
