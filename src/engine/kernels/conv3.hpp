// Rows of direct 3x3 convolutions over a padded panel.
#pragma once

#include "epilogue.hpp"

namespace chexnet {
namespace {

template <class S, bool Pair>
struct Conv3 {
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;

  static void row(const A* corner, const int64_t* offsets, int blocks,
                  int width, int stride, const A* weights, int outputs, S* out,
                  int64_t pitch, Moments moments) {
    alignas(64) A group[kGroup * kOutputs];
    for (int o = 0; o < outputs; o += kOutputs)
      each_row_group(width, [&](int x, int n) {
        const A* a = corner + x * stride * kBlock;
        const A* w = weights + static_cast<int64_t>(o) * blocks * kBlock;
        if (stride == 1)
          multiply_group<A, Pair>(a, offsets, blocks, w, n, group);
        else
          multiply_group<A, Pair, 2 * kBlock>(a, offsets, blocks, w, n, group);
        store_group(group, n, out + x * pitch + o, pitch, moments.from(o));
      });
  }

  static void row_back(const A* from, const int64_t* offsets, int blocks,
                       int count, const A* weights, int64_t weights_step,
                       const GradientEpilogue<S>& epilogue, int64_t first_pixel,
                       int stride, Panel<A> y, int64_t at) {
    alignas(64) A group[kGroup * kOutputs];
    for (int o = epilogue.first; o < epilogue.last; o += kOutputs)
      each_row_group(count, [&](int x, int n) {
        for (int r = 0; r < n; ++r) {
          const int64_t pixel =
              first_pixel + static_cast<int64_t>(x + r) * stride;
          prefetch_outputs(epilogue.map.x + pixel * epilogue.map.pitch + o);
          prefetch_outputs(epilogue.d + pixel * epilogue.d_pitch + o);
        }
        multiply_group<A, Pair>(from + x * kBlock, offsets, blocks,
                                weights + o / kOutputs * weights_step, n,
                                group);
        for (int c = 0; c < kOutputs; c += L) {
          EpilogueLane<S> lane(epilogue, o + c);
          for (int r = 0; r < n; ++r) {
            const int64_t place = static_cast<int64_t>(x + r) * stride;
            put_in_row<S, Pair>(y, at + place, o + c - epilogue.first,
                                lane.template pass<AccumulateMode::kStore>(
                                    epilogue, first_pixel + place,
                                    load(group + r * kOutputs + c)),
                                stride, x + r == 0);
          }
          lane.finish(epilogue, o + c);
        }
      });
  }

  // Three columns of the kernel at once: 3 x 8 sums of one vector of input
  // channels.
  static constexpr int kRows = kVectorBytes == 64 ? 8 : 4;
  template <int Stride>
  static __attribute__((noinline)) void gradient_column(
      const A* __restrict y, int64_t y_step, const A* __restrict dy,
      int64_t dy_step, int rows, int width, A* __restrict w) {
    Vec<A> sum[3][kRows];
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k)
#pragma GCC unroll 8
      for (int o = 0; o < kRows; ++o)
        sum[k][o] = load(w + (k * 8 + o) * kBlock);
    for (int h = 0; h < rows; ++h) {
      const A* __restrict from = y + h * y_step;
      const A* __restrict d = dy + h * dy_step;
      for (int x = 0; x < width; x += Pair ? 2 : 1) {
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
  static void weight_gradient(Panel<A> y, int64_t y_pitch, int stride,
                              Panel<A> dy, int64_t dy_pitch, int rows,
                              int width, int channels, int outputs, A* w) {
    const auto column = stride == 1 ? gradient_column<1> : gradient_column<2>;
    for (int c = 0; c < channels; c += kBlock)
      for (int ky = 0; ky < 3; ++ky)
        for (int o = 0; o < outputs; o += 8, w += 3 * 8 * kBlock)
          for (int part = 0; part < 8; part += kRows)
            for (int lane = 0; lane < kBlock; lane += L)
              column(y.units + ((c / kBlock) * y.rows + ky * y_pitch) * kBlock +
                         lane,
                     stride * y_pitch * kBlock,
                     dy.units + (o / kBlock) * dy.rows * kBlock + o % kBlock +
                         part,
                     dy_pitch * kBlock, rows, width, w + part * kBlock + lane);
  }
};

}  // namespace
}  // namespace chexnet
