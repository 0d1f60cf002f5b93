// Rows of direct 3x3 convolutions over a padded panel.
#pragma once

#include "epilogue.hpp"

namespace chexnet {
namespace {

template <class S, bool Pair>
struct Conv3 {
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;

  // Cuts a band into groups of at most 14 pixels: of a row, or of two rows of
  // at most 7. Calls multiply(image, row, x, pixels, two) for each group.
  template <class Multiply>
  static CHEXNET_INLINE void each_group(Band band, const Multiply& multiply) {
    const bool pairs = kTwoRowsAtOnce && band.width <= kHalfGroup;
    for (int i = 0; i < band.images; ++i)
      for (int h = 0; h < band.rows; ++h)
        if (pairs && h + 1 < band.rows)
          multiply(i, h++, 0, band.width, true);
        else
          each_row_group(band.width,
                         [&](int x, int n) { multiply(i, h, x, n, false); });
  }

  template <int Step>
  static CHEXNET_INLINE void multiply_rows(const A* a, int64_t apart, bool two,
                                           const int64_t* offsets, int blocks,
                                           const A* weights, int n, A* group) {
    if (two)
      multiply_two_rows<A, Pair, Step>(a, apart * kBlock, offsets, blocks,
                                       weights, group);
    else
      multiply_group<A, Pair, Step>(a, offsets, blocks, weights, n, group);
  }

  static void band(const A* corner, BandSteps corner_steps,
                   const int64_t* offsets, int blocks, Band band, int stride,
                   const A* weights, int outputs, S* out, BandSteps out_steps,
                   int64_t pitch, Moments moments) {
    alignas(64) A group[kGroup * kOutputs];
    for (int o = 0; o < outputs; o += kOutputs) {
      const A* w = weights + static_cast<int64_t>(o) * blocks * kBlock;
      each_group(band, [&](int i, int h, int x, int n, bool two) {
        const A* a =
            corner + (corner_steps.at(i, h) + int64_t{x} * stride) * kBlock;
        const auto row = [&](int r) {
          return out + (out_steps.at(i, h + r) + x) * pitch + o;
        };
        for (int r = 0; r <= static_cast<int>(two); ++r)
          for (int p = 0; p < n; ++p) prefetch_for_writing(row(r) + p * pitch);
        if (stride == 1)
          multiply_rows<kBlock>(a, corner_steps.row, two, offsets, blocks, w, n,
                                group);
        else
          multiply_rows<2 * kBlock>(a, corner_steps.row, two, offsets, blocks,
                                    w, n, group);
        for (int r = 0; r <= static_cast<int>(two); ++r)
          store_group(group + r * kHalfGroup * kOutputs, n, row(r), pitch,
                      moments.from(o));
      });
    }
  }

  static void band_back(const A* from, BandSteps from_steps,
                        const int64_t* offsets, int blocks, Band band,
                        const A* weights, int64_t weights_step,
                        const GradientEpilogue<S>& epilogue,
                        int64_t first_pixel, BandSteps pixel_steps, int stride,
                        Panel<A> y, int64_t at, BandSteps at_steps) {
    alignas(64) A group[kGroup * kOutputs];
    for (int o = epilogue.first; o < epilogue.last; o += kOutputs)
      each_group(band, [&](int i, int h, int x, int n, bool two) {
        const int rows = 1 + static_cast<int>(two);
        const auto pixel_of = [&](int r) {
          return first_pixel + pixel_steps.at(i, h + r) +
                 static_cast<int64_t>(x) * stride;
        };
        for (int r = 0; r < rows; ++r)
          for (int p = 0; p < n; ++p) {
            const int64_t pixel = pixel_of(r) + p * stride;
            prefetch_outputs(epilogue.map.x + pixel * epilogue.map.pitch + o);
            prefetch_outputs(epilogue.d + pixel * epilogue.d_pitch + o);
          }
        multiply_rows<kBlock>(from + (from_steps.at(i, h) + x) * kBlock,
                              from_steps.row, two, offsets, blocks,
                              weights + o / kOutputs * weights_step, n, group);
        for (int r = 0; r < rows; ++r)
          back_row(group + r * kHalfGroup * kOutputs, n, epilogue, o,
                   pixel_of(r), stride, y,
                   at + at_steps.at(i, h + r) + int64_t{x} * stride, x == 0);
      });
  }
  static CHEXNET_INLINE void back_row(const A* group, int n,
                                      const GradientEpilogue<S>& epilogue,
                                      int o, int64_t pixel, int stride,
                                      Panel<A> y, int64_t at, bool first) {
    for (int c = 0; c < kOutputs; c += L) {
      EpilogueLane<S> lane(epilogue, o + c);
      for (int p = 0; p < n; ++p)
        put_in_row<S, Pair>(y, at + int64_t{p} * stride, o + c - epilogue.first,
                            lane.template pass<AccumulateMode::kStore>(
                                epilogue, pixel + int64_t{p} * stride,
                                load(group + p * kOutputs + c)),
                            stride, first && p == 0);
      lane.finish(epilogue, o + c);
    }
  }

  // Three columns of the kernel at once: 3 x 8 sums of one vector of input
  // channels.
  static constexpr int kRows = kVectorRegisters == 32 ? 8 : 4;
  template <int Stride>
  static __attribute__((noinline)) void gradient_column(
      const A* __restrict y, BandSteps y_steps, const A* __restrict dy,
      BandSteps dy_steps, Band band, A* __restrict w) {
    Vec<A> sum[3][kRows];
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k)
#pragma GCC unroll 8
      for (int o = 0; o < kRows; ++o)
        sum[k][o] = load(w + (k * 8 + o) * kBlock);
    for (int i = 0; i < band.images; ++i)
      for (int h = 0; h < band.rows; ++h) {
        const A* __restrict from = y + y_steps.at(i, h) * kBlock;
        const A* __restrict d = dy + dy_steps.at(i, h) * kBlock;
        for (int x = 0; x < band.width; x += Pair ? 2 : 1) {
          const A* __restrict at = from + x * Stride * kBlock;
          const Vec<A> y0 = load(at), y1 = load(at + kBlock),
                       y2 = load(at + 2 * kBlock);
#pragma GCC unroll 8
          for (int o = 0; o < kRows; ++o) {
            const Vec<A> v = splat(d[x * kBlock + o]);
            sum[0][o] = multiply_add<Pair>(sum[0][o], v, y0);
            sum[1][o] = multiply_add<Pair>(sum[1][o], v, y1);
            sum[2][o] = multiply_add<Pair>(sum[2][o], v, y2);
          }
        }
      }
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k)
#pragma GCC unroll 8
      for (int o = 0; o < kRows; ++o)
        store(w + (k * 8 + o) * kBlock, sum[k][o]);
  }
  // `y_steps.row` is `stride` panel rows of the padded input.
  static void weight_gradient(Panel<A> y, BandSteps y_steps, int stride,
                              Panel<A> dy, BandSteps dy_steps, Band band,
                              int channels, int outputs, A* w) {
    const auto column = stride == 1 ? gradient_column<1> : gradient_column<2>;
    const int64_t pitch = y_steps.row / stride;
    for (int c = 0; c < channels; c += kBlock)
      for (int ky = 0; ky < 3; ++ky)
        for (int o = 0; o < outputs; o += 8, w += 3 * 8 * kBlock)
          for (int part = 0; part < 8; part += kRows)
            for (int lane = 0; lane < kBlock; lane += L)
              column(y.units + ((c / kBlock) * y.rows + ky * pitch) * kBlock +
                         lane,
                     y_steps,
                     dy.units + (o / kBlock) * dy.rows * kBlock + o % kBlock +
                         part,
                     dy_steps, band, w + part * kBlock + lane);
  }
};

}  // namespace
}  // namespace chexnet
