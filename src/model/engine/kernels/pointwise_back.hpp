// Tiles of 1x1 convolutions, backward. The result goes from the registers
// through ReLU into BatchNorm's sums while the next group of pixels is
// multiplied:
//
//     multiply   group 0   group 1   group 2   ...
//     epilogue             group 0   group 1   ...   the last one
#pragma once

#include "epilogue.hpp"

namespace chexnet {
namespace {

template <class S, bool Pair>
struct PointwiseBack {
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;

  static CHEXNET_INLINE Vec<A> gradient_at(const GradientMap<S>& map,
                                           int64_t pixel, int c) {
    return fused(load(map.d + pixel * map.d_pitch + c), load(map.a + c),
                 fused(load(map.x + pixel * map.x_pitch + c), load(map.b + c),
                       load(map.c + c)));
  }
  static void gradient(const GradientMap<S>& map, int64_t first, int n,
                       Panel<A> by_channels, Panel<A> by_pixels) {
    for (int p = 0; p < n; ++p)
      for (int c = 0; c < map.channels; c += L) {
        const Vec<A> v = gradient_at(map, first + p, c);
        put_by_channels<S, Pair>(by_channels, p, c, v);
        if (by_pixels.units != nullptr)
          put_by_pixels<S, Pair>(by_pixels, p, c, v);
      }
  }
  static void gradient_row(const GradientMap<S>& map, int64_t first, int n,
                           Panel<A> by_channels, Panel<A> by_pixels,
                           int64_t at) {
    // Pixels; a slice of a wide map is one line of each.
    constexpr int kAhead = 12;
    for (int p = 0; p < n; ++p) {
      for (int c = 0; c < map.channels; c += 64 / static_cast<int>(sizeof(S))) {
        __builtin_prefetch(map.d + (first + p + kAhead) * map.d_pitch + c);
        __builtin_prefetch(map.x + (first + p + kAhead) * map.x_pitch + c);
      }
      for (int c = 0; c < map.channels; c += L) {
        const Vec<A> v = gradient_at(map, first + p, c);
        put_by_channels<S, Pair>(by_channels, at + p, c, v);
        if (by_pixels.units != nullptr)
          put_in_row<S, Pair>(by_pixels, at + p, c, v, 1, p == 0);
      }
    }
  }

  // Sums of one group: `rows` pixels, 32 channels from `channel` on.
  struct Group {
    const A* sums = nullptr;  // [rows][kOutputs]
    const int64_t* pixels = nullptr;
    int64_t at = 0;  // the first one's row in y
    int rows = 0, channel = 0;
  };

  // The epilogue of the last group, a few rows between the steps of the sums of
  // the group that is multiplied now. The rows of `now` are prefetched one by
  // one, because a burst of prefetches would hold up the products. By their
  // turn panels and weights have passed through L1, so they are prefetched
  // again shortly before.
  template <AccumulateMode How>
  struct RowsOfLast {
    static constexpr bool kAny = true;
    static constexpr int kAhead = 3;
    const GradientEpilogue<S>* epilogue;
    Panel<A> y;
    A* totals;  // [2][kOutputs], over the rows of `last` so far
    Group last, now;
    int step;  // rows of `last` a quarter of a block, times 2^16

    template <int Locality>
    CHEXNET_INLINE void ask_for(const Group& group, int row) const {
      const int64_t pixel = group.pixels[row];
      prefetch_outputs<Locality>(epilogue->map.x + pixel * epilogue->map.pitch +
                                 group.channel);
      prefetch_outputs<Locality>(epilogue->d + pixel * epilogue->d_pitch +
                                 group.channel);
    }
    CHEXNET_INLINE void row(int r) const {
      for (int c = 0; c < kOutputs; c += L) {
        EpilogueLane<S> lane(*epilogue, last.channel + c);
        lane.sum = load(totals + c);
        lane.product = load(totals + kOutputs + c);
        put_by_pixels<S, Pair>(
            y, last.at + r, last.channel + c - epilogue->first,
            lane.template pass<How>(*epilogue, last.pixels[r],
                                    load(last.sums + r * kOutputs + c)));
        store(totals + c, lane.sum);
        store(totals + kOutputs + c, lane.product);
      }
    }
    CHEXNET_INLINE void operator()(int block, int quarter) const {
      const int slot = 4 * block + quarter;
      const int end = std::min(last.rows, (slot + 1) * step >> 16);
      for (int r = slot * step >> 16; r < end; ++r) {
        ask_for<3>(last, std::min(r + kAhead, last.rows - 1));
        ask_for<2>(now, std::min(r, now.rows - 1));
        row(r);
      }
    }
    // Once all rows of `last` are done.
    void finish() const {
      if (last.rows == 0) return;
      for (int c = 0; c < kOutputs; c += L) {
        add_wide(epilogue->sum + last.channel + c, load(totals + c));
        add_wide(epilogue->product + last.channel + c,
                 load(totals + kOutputs + c));
        store(totals + c, Vec<A>{});
        store(totals + kOutputs + c, Vec<A>{});
      }
    }
  };

  template <AccumulateMode How>
  static void multiply_back_as(Panel<A> panel, int n, int channels,
                               const A* weights,
                               const GradientEpilogue<S>& epilogue,
                               const int64_t* pixels, Panel<A> y) {
    const int blocks = channels / kBlock / (Pair ? 2 : 1), slots = 4 * blocks;
    const BlockOffsets offsets(blocks, panel.rows);
    alignas(64) A sums[2][kGroup * kOutputs];
    alignas(64) A totals[2 * kOutputs] = {};
    RowsOfLast<How> work{&epilogue, y, totals, {}, {}, 0};
    int turn = 0;
    for (int o = epilogue.first; o < epilogue.last; o += kOutputs)
      for (int p = 0; p < n; p += kGroup) {
        work.now = {sums[turn], pixels + p, p, std::min(kGroup, n - p), o};
        for (int r = work.last.rows; r < work.now.rows; ++r)
          work.template ask_for<3>(work.now, r);
        multiply_group_and<A, Pair>(
            panel.units + p * kBlock, offsets.values, blocks,
            weights + static_cast<int64_t>(o) * blocks * kBlock, work.now.rows,
            sums[turn], work);
        work.finish();
        work.last = work.now;
        work.step = ((work.last.rows << 16) + slots - 1) / slots;
        turn = 1 - turn;
      }
    for (int r = 0; r < work.last.rows; ++r) work.row(r);
    work.finish();
  }
  static void multiply_back(Panel<A> panel, int n, int channels,
                            const A* weights,
                            const GradientEpilogue<S>& epilogue,
                            const int64_t* pixels, Panel<A> y) {
    const auto multiply = [&]() {
      switch (epilogue.accumulate) {
        case AccumulateMode::kAdd:
          return multiply_back_as<AccumulateMode::kAdd>;
        case AccumulateMode::kAddBeforeRelu:
          return multiply_back_as<AccumulateMode::kAddBeforeRelu>;
        case AccumulateMode::kStore:
          break;
      }
      return multiply_back_as<AccumulateMode::kStore>;
    }();
    multiply(panel, n, channels, weights, epilogue, pixels, y);
  }

  static void back_group_pooled(const A* group, int rows,
                                const GradientEpilogue<S>& epilogue,
                                int channel, const int64_t* pixels, int64_t row,
                                Panel<A> y, int64_t at) {
    for (int c = 0; c < kOutputs; c += L) {
      EpilogueLane<S> lane(epilogue, channel + c);
      for (int r = 0; r < rows; ++r) {
        const Vec<A> dy = load(group + r * kOutputs + c) * splat(A(0.25));
        Vec<A> sum = {};
        for (const int64_t place : {int64_t{0}, int64_t{1}, row, row + 1})
          sum += lane.template pass<AccumulateMode::kStore>(
              epilogue, pixels[r] + place, dy);
        put_by_pixels<S, Pair>(y, at + r, channel + c - epilogue.first,
                               sum * splat(A(0.25)));
      }
      lane.finish(epilogue, channel + c);
    }
  }

  // Prefetches the four pixels of each row of a group while it is multiplied.
  struct AskForFour {
    static constexpr bool kAny = true;
    const GradientEpilogue<S>* epilogue;
    const int64_t* pixels;
    int64_t row;
    int channel, rows;
    int portion;  // pixels a quarter of a block
    CHEXNET_INLINE void operator()(int block, int quarter) const {
      const int first = (4 * block + quarter) * portion;
      for (int i = first; i < std::min(first + portion, 4 * rows); ++i) {
        const int64_t pixel = pixels[i / 4] + i % 4 / 2 * row + i % 2;
        prefetch_outputs<2>(epilogue->map.x + pixel * epilogue->map.pitch +
                            channel);
        prefetch_for_writing(epilogue->d + pixel * epilogue->d_pitch + channel);
      }
    }
  };

  static void multiply_back_pooled(Panel<A> panel, int n, int channels,
                                   const A* weights,
                                   const GradientEpilogue<S>& epilogue,
                                   const int64_t* pixels, int64_t row,
                                   Panel<A> y) {
    const int blocks = channels / kBlock / (Pair ? 2 : 1);
    const BlockOffsets offsets(blocks, panel.rows);
    alignas(64) A group[kGroup * kOutputs];
    for (int o = epilogue.first; o < epilogue.last; o += kOutputs)
      for (int p = 0; p < n; p += kGroup) {
        const int rows = std::min(kGroup, n - p);
        multiply_group_and<A, Pair>(
            panel.units + p * kBlock, offsets.values, blocks,
            weights + static_cast<int64_t>(o) * blocks * kBlock, rows, group,
            AskForFour{&epilogue, pixels + p, row, o, rows,
                       (4 * rows + 4 * blocks - 1) / (4 * blocks)});
        back_group_pooled(group, rows, epilogue, o, pixels + p, row, y, p);
      }
  }

  static void weight_gradient(Panel<A> dy, int outputs, Panel<A> y,
                              int channels, int n, A* w, int64_t pitch,
                              bool add, NextRows next, NextRows also_next) {
    gradient_tiles<A, Pair>(dy, outputs, y, channels, Pair ? (n + 1) / 2 : n, w,
                            pitch, add, next, also_next);
  }
};

}  // namespace
}  // namespace chexnet
