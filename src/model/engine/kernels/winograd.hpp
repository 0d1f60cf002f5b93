// 3x3 convolution by Winograd: Y = At [(G g Gt) . (Bt d B)] A (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2016), in tiles of M x M
// outputs: 16 products for 4 of F(2x2,3x3), 36 for 16 of F(4x4,3x3), where the
// direct form needs 36 and 144. Backward with respect to the input is the same
// with flipped weights; with respect to the weights dU = sum over tiles of
// (A dY At) . (Bt d B), dg = Gt dU G.
//
// F(4x4,3x3) rounds three times as much as F(2x2,3x3). The polynomials are
// evaluated at 0, +-a, +-b and infinity with a = 1/sqrt(2), b = sqrt(2). Of all
// points +-a, +-b these and their neighbors round least, and a * b = 1 makes
// most factors 1: errors are 0.4 of those of the usual points 1 and 2.
//
//     Bt = |1    0    -a2-b2  0       1  0|   At = |1  1   1   1   1  0|
//          |0 -a b2   -b2     a       1  0|        |0  a  -a   b  -b  0|
//          |0  a b2   -b2    -a       1  0|        |0  a2  a2  b2  b2 0|
//          |0 -b a2   -a2     b       1  0|        |0  a3 -a3  b3 -b3 1|
//          |0  b a2   -a2    -b       1  0|
//          |0    1     0     -a2-b2   0  1|
//
// G is in weights.hpp.
#pragma once

#include "pointwise_back.hpp"

namespace chexnet {
namespace {

constexpr int kChunk = 28, kWideChunk = 64;  // tiles

template <class S, int M, int Tiles = kChunk>
struct Winograd {
  static_assert(M == 2 || M == 4);
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;
  static constexpr int kM = M, kTiles = Tiles, kSide = M + 2,
                       kFrequencies = kSide * kSide;
  static constexpr int64_t step_of(int channels) {
    return WinogradKernels<S>{.side = M, .most_tiles = Tiles}.step(channels);
  }
  static constexpr A kA1 = A(0.70710678118654752440), kB1 = 2 * kA1,
                     kA2 = A(0.5), kB2 = A(2), kA3 = kA1 / 2, kSum2 = A(2.5);

  // First outputs of a chunk's tiles.
  struct Corners {
    WinogradTile values[kTiles];
    Corners(ImageSize shape, int first, int tiles) {
      for (int i = 0; i < tiles; ++i)
        values[i] = winograd_tile(shape, M, first + i);
    }
  };

  // The pixels that Bt d B of a tile reads: its outputs and one more on each
  // side.
  struct Window {
    int64_t corner;  // the upper left pixel, which may be outside
    int width;
    bool whole;  // all of it is inside the image
    bool inside[kFrequencies];
    Window(ImageSize shape, int tile) : width(shape.width) {
      const WinogradTile at = winograd_tile(shape, M, tile);
      corner = at.pixel - shape.width - 1;
      whole = at.y > 0 && at.x > 0 && at.y + M < shape.height &&
              at.x + M < shape.width;
      for (int e = 0; e < kFrequencies; ++e) {
        const int y = at.y - 1 + e / kSide, x = at.x - 1 + e % kSide;
        inside[e] = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
      }
    }
    CHEXNET_INLINE int64_t pixel(int e) const {
      return corner + int64_t{e / kSide} * width + e % kSide;
    }
  };

  // Bt over kSide values that are `step` apart.
  static CHEXNET_INLINE void transform(Vec<A>* d, int64_t step) {
    if constexpr (M == 2) {
      Vec<A>&d0 = d[0], &d1 = d[step], &d2 = d[2 * step], &d3 = d[3 * step];
      const Vec<A> first = d0 - d2, sum = d1 + d2, difference = d2 - d1,
                   last = d1 - d3;
      d0 = first;
      d1 = sum;
      d2 = difference;
      d3 = last;
    } else {
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
  }
  // At over kSide values.
  static CHEXNET_INLINE void outputs_of(const Vec<A> (&m)[kSide],
                                        Vec<A> (&out)[M]) {
    if constexpr (M == 2) {
      out[0] = m[0] + m[1] + m[2];
      out[1] = m[1] - m[2] - m[3];
    } else {
      const Vec<A> sum_a = m[1] + m[2], sum_b = m[3] + m[4];
      const Vec<A> odd_a = m[1] - m[2], odd_b = m[3] - m[4];
      // b is 2 a. A sum of two products would be rounded in one of two ways, as
      // the compiler chooses which of them goes into a fused multiply-add.
      out[0] = m[0] + sum_a + sum_b;
      out[1] = (odd_b * A(2) + odd_a) * kA1;
      out[2] = sum_a * kA2 + sum_b * kB2;  // powers of two: exact
      out[3] = (odd_b * A(8) + odd_a) * kA3 + m[5];
    }
  }
  // A over M values.
  static CHEXNET_INLINE void spread(const Vec<A> (&d)[M],
                                    Vec<A> (&out)[kSide]) {
    static_assert(M == 4, "backward takes F(4x4,3x3)");
    const Vec<A> even_a = d[2] * kA2 + d[0], odd_a = (d[3] * kA2 + d[1]) * kA1;
    const Vec<A> even_b = d[2] * kB2 + d[0], odd_b = (d[3] * kB2 + d[1]) * kB1;
    out[0] = d[0];
    out[1] = even_a + odd_a;
    out[2] = even_a - odd_a;
    out[3] = even_b + odd_b;
    out[4] = even_b - odd_b;
    out[5] = d[3];
  }

  // Prefetches the pixels that only the tile to the right reads, not this one
  // nor those above.
  template <class Ask>
  static CHEXNET_INLINE void ask_for_next(const Window& window,
                                          const Ask& ask) {
#pragma GCC unroll 36
    for (int e = 0; e < kFrequencies; ++e)
      if (e / kSide >= 2 && e % kSide >= 2) ask(window.pixel(e) + M);
  }

  // use(d, channel) with the window's values, read(pixel, channel); zero
  // outside the image.
  template <class Read, class Use>
  static CHEXNET_INLINE void each_window(const Window& window, int channels,
                                         const Read& read, const Use& use) {
    for (int c = 0; c < channels; c += L) {
      Vec<A> d[kFrequencies];
      if (window.whole) {
#pragma GCC unroll 36
        for (int e = 0; e < kFrequencies; ++e) d[e] = read(window.pixel(e), c);
      } else {
#pragma GCC unroll 36
        for (int e = 0; e < kFrequencies; ++e) {
          d[e] = Vec<A>{};
          if (window.inside[e]) d[e] = read(window.pixel(e), c);
        }
      }
      use(d, c);
    }
  }

  // V of one tile and one vector of channels: Bt d B, in place.
  static CHEXNET_INLINE void put_transformed(Vec<A> (&d)[kFrequencies], A* v,
                                             int64_t step, int tile, int c) {
#pragma GCC unroll 6
    for (int x = 0; x < kSide; ++x) transform(d + x, kSide);
#pragma GCC unroll 6
    for (int y = 0; y < kSide; ++y) transform(d + y * kSide, 1);
#pragma GCC unroll 36
    for (int f = 0; f < kFrequencies; ++f)
      put_by_channels<S, false>(Panel<A>{v + f * step, kTiles}, tile, c, d[f]);
  }

  static void input(const FeatureMap<S>& map, ImageSize shape, int first,
                    int tiles, A* v) {
    const int64_t step = step_of(map.channels);
    for (int i = 0; i < tiles; ++i) {
      const Window window(shape, first + i);
      const auto put = [&](Vec<A>(&d)[kFrequencies], int c)
          __attribute__((always_inline)) {
        ask_for_next(
            window, [&](int64_t pixel) __attribute__((always_inline)) {
              __builtin_prefetch(map.x + pixel * map.pitch + c);
            });
        put_transformed(d, v, step, i, c);
      };
      if (map.scale == nullptr)
        each_window(
            window, map.channels,
            [&](int64_t pixel, int c) __attribute__((always_inline)) {
              return load(map.x + pixel * map.pitch + c);
            },
            put);
      else
        each_window(
            window, map.channels,
            [&](int64_t pixel, int c) __attribute__((always_inline)) {
              return relu(load(map.x + pixel * map.pitch + c) *
                              load(map.scale + c) +
                          load(map.shift + c));
            },
            put);
    }
  }

  static void gradient(const GradientMap<S>& map, ImageSize shape, int first,
                       int tiles, A* v, A* q) {
    const int64_t step = step_of(map.channels);
    for (int i = 0; i < tiles; ++i) {
      const Window window(shape, first + i);
      each_window(
          window, map.channels,
          [&](int64_t pixel, int c) __attribute__((always_inline)) {
            return PointwiseBack<S, false>::gradient_at(map, pixel, c);
          },
          [&](Vec<A>(&d)[kFrequencies], int c) __attribute__((always_inline)) {
            ask_for_next(
                window, [&](int64_t pixel) __attribute__((always_inline)) {
                  __builtin_prefetch(map.d + pixel * map.d_pitch + c);
                  __builtin_prefetch(map.x + pixel * map.x_pitch + c);
                });
            put_spread(d, q, step, i, c);
            put_transformed(d, v, step, i, c);
          });
    }
  }
  // Q of one tile and one vector of channels: A dY At, dY being the inner part
  // of the window.
  static CHEXNET_INLINE void put_spread(const Vec<A> (&d)[kFrequencies], A* q,
                                        int64_t step, int tile, int c) {
    Vec<A> half[M][kSide];
#pragma GCC unroll 4
    for (int y = 0; y < M; ++y) {
      const Vec<A>* row = d + (y + 1) * kSide + 1;
      spread({row[0], row[1], row[2], row[3]}, half[y]);
    }
#pragma GCC unroll 6
    for (int x = 0; x < kSide; ++x) {
      Vec<A> out[kSide];
      spread({half[0][x], half[1][x], half[2][x], half[3][x]}, out);
#pragma GCC unroll 6
      for (int y = 0; y < kSide; ++y)
        put_by_channels<S, false>(Panel<A>{q + (kSide * y + x) * step, kTiles},
                                  tile, c, out[y]);
    }
  }

  // between() is called before each group of tiles.
  template <class Between>
  static CHEXNET_INLINE void multiply_and(const A* v, int tiles, int channels,
                                          const A* u, int first, int last,
                                          int outputs, A* m,
                                          const Between& between) {
    const int blocks = channels / kBlock;
    const BlockOffsets offsets(blocks, kTiles);
    for (int f = 0; f < kFrequencies; ++f)
      for (int o = first; o < last; o += kOutputs)
        each_row_group(tiles, [&](int t, int rows) {
          between();
          multiply_group<A, false>(
              v + f * step_of(channels) + t * kBlock, offsets.values, blocks,
              u + (static_cast<int64_t>(f) * outputs + o) * channels, rows,
              m + f * step_of(last - first) +
                  ((o - first) / kOutputs * kTiles + t) * kOutputs);
        });
  }
  static void multiply(const A* v, int tiles, int channels, const A* u,
                       int outputs, A* m) {
    multiply_and(v, tiles, channels, u, 0, outputs, outputs, m, [] {});
  }

  // The M x M outputs of a tile.
  static CHEXNET_INLINE void tile_outputs(const A* from, int64_t step,
                                          Vec<A> (&tile)[M][M]) {
    Vec<A> half[M][kSide];
#pragma GCC unroll 6
    for (int x = 0; x < kSide; ++x) {
      Vec<A> column[kSide], out[M];
#pragma GCC unroll 6
      for (int y = 0; y < kSide; ++y)
        column[y] = load(from + (kSide * y + x) * step);
      outputs_of(column, out);
#pragma GCC unroll 4
      for (int y = 0; y < M; ++y) half[y][x] = out[y];
    }
#pragma GCC unroll 4
    for (int y = 0; y < M; ++y) outputs_of(half[y], tile[y]);
  }
  // use(value, pixel) with each output of the tiles that is in the map, for one
  // vector of outputs.
  template <class Use>
  static CHEXNET_INLINE void each_output(const A* from, int64_t step,
                                         ImageSize shape,
                                         const Corners& corners, int tiles,
                                         const Use& use) {
    for (int i = 0; i < tiles; ++i) {
      const WinogradTile at = corners.values[i];
      Vec<A> tile[M][M];
      tile_outputs(from + i * kOutputs, step, tile);
#pragma GCC unroll 4
      for (int y = 0; y < M; ++y) {
        if (at.y + y >= shape.height) continue;
        const int64_t row = at.pixel + int64_t{y} * shape.width;
#pragma GCC unroll 4
        for (int x = 0; x < M; ++x)
          if (at.x + x < shape.width) use(tile[y][x], row + x);
      }
    }
  }
  // M of output o.
  static CHEXNET_INLINE const A* outputs_at(const A* m, int o) {
    return m + o / kOutputs * kTiles * kOutputs + o % kOutputs;
  }

  static void output(const A* m, ImageSize shape, int first, int tiles,
                     int outputs, S* out, int64_t pitch, Moments moments) {
    const int64_t step = step_of(outputs);
    const Corners corners(shape, first, tiles);
    for (int o = 0; o < outputs; o += L) {
      const A* from = outputs_at(m, o);
      if (moments.sum == nullptr) {
        each_output(
            from, step, shape, corners,
            tiles, [&](Vec<A> v, int64_t pixel) __attribute__((always_inline)) {
              store(out + pixel * pitch + o, v);
            });
        continue;
      }
      Vec<A> tile[M][M];
      tile_outputs(from, step, tile);
      ShiftedSums<A> sums(as_stored<S>(tile[0][0]));
      each_output(
          from, step, shape, corners,
          tiles, [&](Vec<A> v, int64_t pixel) __attribute__((always_inline)) {
            v = as_stored<S>(v);
            store(out + pixel * pitch + o, v);
            sums.add(v);
          });
      sums.add_to(moments, o);
    }
  }

  // Prefetches a tile's pixels of the epilogue's two maps, a few at a time.
  class AskForOutputs {
   public:
    AskForOutputs(const GradientEpilogue<S>& epilogue, const Corners& corners,
                  int width, int tiles, int portions)
        : epilogue_(epilogue),
          corners_(corners),
          width_(width),
          left_(tiles * M * M),
          portion_((left_ + portions - 1) / portions) {}
    CHEXNET_INLINE void operator()() {
      for (int i = 0; i < portion_ && left_ > 0; ++i, --left_, ++next_) {
        const int64_t pixel = corners_.values[next_ / (M * M)].pixel +
                              int64_t{next_ / M % M} * width_ + next_ % M;
        const S* x = epilogue_.map.x + pixel * epilogue_.map.pitch;
        const S* d = epilogue_.d + pixel * epilogue_.d_pitch;
        for (int c = epilogue_.first; c < epilogue_.last;
             c += 64 / static_cast<int>(sizeof(S))) {
          __builtin_prefetch(x + c, 0, 2);
          __builtin_prefetch(d + c, 1, 2);
        }
      }
    }

   private:
    const GradientEpilogue<S>& epilogue_;
    const Corners& corners_;
    int width_, left_, portion_, next_ = 0;
  };

  static void multiply_back(const A* v, ImageSize shape, int first, int tiles,
                            int channels, const A* u, int outputs,
                            const GradientEpilogue<S>& epilogue, A* m) {
    const int wanted = epilogue.last - epilogue.first;
    const Corners corners(shape, first, tiles);
    AskForOutputs ask(
        epilogue, corners, shape.width, tiles,
        kFrequencies * (wanted / kOutputs) * ((tiles + kGroup - 1) / kGroup));
    multiply_and(
        v, tiles, channels, u, epilogue.first, epilogue.last, outputs,
        m, [&]() __attribute__((always_inline)) { ask(); });
    for (int o = 0; o < wanted; o += L) {
      EpilogueLane<S> lane(epilogue, epilogue.first + o);
      each_output(
          outputs_at(m, o), step_of(wanted), shape, corners,
          tiles, [&](Vec<A> dy, int64_t pixel) __attribute__((always_inline)) {
            lane.template pass<AccumulateMode::kStore>(epilogue, pixel, dy);
          });
      lane.finish(epilogue, epilogue.first + o);
    }
  }

  static void weight_gradient(const A* q, int outputs, const A* v, int channels,
                              int tiles, A* w, int64_t pitch, bool add,
                              NextRows next, NextRows also_next) {
    // A part of the rows with each frequency.
    const auto part = [](const NextRows& rows, int f) -> NextRows {
      const int begin = rows.rows * f / kFrequencies;
      return {static_cast<const char*>(rows.at) + begin * rows.pitch_bytes,
              rows.pitch_bytes, rows.row_bytes,
              rows.rows * (f + 1) / kFrequencies - begin};
    };
    for (int f = 0; f < kFrequencies; ++f)
      gradient_tiles<A, false>(
          {const_cast<A*>(q) + f * step_of(outputs), kTiles}, outputs,
          {const_cast<A*>(v) + f * step_of(channels), kTiles}, channels, tiles,
          w + static_cast<int64_t>(f) * outputs * pitch, pitch, add,
          part(next, f), part(also_next, f));
  }
};

}  // namespace
}  // namespace chexnet
