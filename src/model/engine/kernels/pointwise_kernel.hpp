// Tiles of 1x1 convolutions, forward.
#pragma once

#include "epilogue.hpp"

namespace chexnet {
namespace {

template <class S, bool Pair>
struct Pointwise {
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;

  static void normalize(const FeatureMap<S>& map, const int64_t* pixels, int n,
                        Panel<A> panel, int64_t at) {
    constexpr int kAhead = 12;  // pixels
    for (int p = 0; p < n; ++p) {
      const S* x = map.x + pixels[p] * map.pitch;
      for (int c = 0; c < map.channels; c += 64 / static_cast<int>(sizeof(S)))
        __builtin_prefetch(x + kAhead * map.pitch + c);
      for (int c = 0; c < map.channels; c += L)
        put_by_channels<S, Pair>(
            panel, at + p, c,
            relu(load(x + c) * load(map.scale + c) + load(map.shift + c)));
    }
  }

  static void copy(const S* map, int64_t pitch, int channels, int64_t first,
                   int n, Panel<A> panel, int64_t at) {
    constexpr int kChannels = Pair ? 2 * kBlock : kBlock;
    for (int p = 0; p < n; ++p) {
      const S* x = map + (first + p) * pitch;
      for (int b = 0; b < channels / kChannels; ++b) {
        A* unit = panel.units + (b * panel.rows + at + p) * kBlock;
        if constexpr (Pair || sizeof(S) == sizeof(A))
          std::memcpy(unit, x + b * kChannels, kBlock * sizeof(A));
        else
          for (int c = 0; c < kBlock; c += L)
            store(unit + c, load(x + b * kBlock + c));
      }
    }
  }

  static void normalize_pooled(const FeatureMap<S>& map, const int64_t* pixels,
                               int n, int64_t row, Panel<A> panel, int64_t at) {
    constexpr int kAhead = 4;  // pixels of the mean
    for (int p = 0; p < n; ++p) {
      const S* upper = map.x + pixels[p] * map.pitch;
      const S* lower = upper + row * map.pitch;
      const int64_t ahead = (p + kAhead < n ? pixels[p + kAhead] - pixels[p]
                                            : int64_t{2} * kAhead) *
                            map.pitch;
      for (int c = 0; c < 2 * map.channels;  // of two neighbors
           c += 64 / static_cast<int>(sizeof(S))) {
        __builtin_prefetch(upper + ahead + c, 0, 2);
        __builtin_prefetch(lower + ahead + c, 0, 2);
      }
      for (int c = 0; c < map.channels; c += L) {
        const Vec<A> scale = load(map.scale + c), shift = load(map.shift + c);
        const auto value = [&](const S* x) {
          return relu(load(x + c) * scale + shift);
        };
        const Vec<A> sum = (value(upper) + value(upper + map.pitch)) +
                           (value(lower) + value(lower + map.pitch));
        put_by_channels<S, Pair>(panel, at + p, c, sum * splat(A(0.25)));
      }
    }
  }

  // Normalizes a few rows of the next tile, a block of channels at a time: row
  // q, q + 4, ... in quarter q.
  struct RowsOfNext {
    static constexpr bool kAny = true;
    const S* x;
    int64_t pitch;
    const A *scale, *shift;
    A* units;  // of the first of these rows
    int64_t block_step;
    int rows, most_rows;
    int64_t ahead;  // from x to the rows that the next call normalizes
    S* out;         // where this group's outputs go
    int64_t out_pitch;
    int out_rows;
    CHEXNET_INLINE void operator()(int block, int quarter) const {
      constexpr int kChannels = Pair ? 2 * kBlock : kBlock;
      if (const int row = 4 * block + quarter; row < out_rows)
        prefetch_for_writing(out + row * out_pitch);
      const int first = block * kChannels;
      for (int r = quarter; r < most_rows; r += 4)
        __builtin_prefetch(x + ahead + r * pitch + first, 0, 2);
      for (int r = quarter; r < rows; r += 4)
        for (int c = 0; c < kChannels; c += L) {
          const Panel<A> to{units + block * block_step, 0};
          put_by_channels<S, Pair>(
              to, r, c,
              relu(load(x + r * pitch + first + c) * load(scale + first + c) +
                   load(shift + first + c)));
        }
    }
  };
  // Its part of the rows of the group that begins at p, for outputs o ...
  static CHEXNET_INLINE RowsOfNext rows_of_next(const NextTile<S>& next, int p,
                                                int o, int outputs, S* out,
                                                int64_t pitch, int rows) {
    const auto begin = [&](int group, int output) {
      const int rows = std::clamp(next.rows - group, 0, kGroup);
      return group + rows * output / outputs;
    };
    const int first = begin(p, o), last = begin(p, o + kOutputs);
    int ahead = next.rows;  // of the tile after it
    if (p + kGroup < next.rows)
      ahead = begin(p + kGroup, o);
    else if (o + kOutputs < outputs)
      ahead = begin(0, o + kOutputs);
    return {next.map.x + (next.first + first) * next.map.pitch,
            next.map.pitch,
            next.map.scale,
            next.map.shift,
            next.panel.units + first * kBlock,
            next.panel.rows * kBlock,
            last - first,
            (kGroup * kOutputs + outputs - 1) / outputs,
            (ahead - first) * next.map.pitch,
            out,
            pitch,
            rows};
  }

  static void multiply(Panel<A> panel, int n, int channels, const A* weights,
                       int outputs, S* out, int64_t pitch,
                       const OutputStage<S>& stage, const NextTile<S>& next) {
    const int blocks = channels / kBlock / (Pair ? 2 : 1);
    const BlockOffsets offsets(blocks, panel.rows);
    alignas(64) A group[kGroup * kOutputs];
    for (int o = 0; o < outputs; o += kOutputs)
      for (int p = 0; p < n; p += kGroup) {
        const int rows = std::min(kGroup, n - p);
        const A* w = weights + static_cast<int64_t>(o) * blocks * kBlock;
        const A* from = panel.units + p * kBlock;
        S* to = out + p * pitch + o;
        if (next.rows > p)
          multiply_group_and<A, Pair>(
              from, offsets.values, blocks, w, rows, group,
              rows_of_next(next, p, o, outputs, to, pitch, rows));
        else
          multiply_group<A, Pair>(from, offsets.values, blocks, w, rows, group);
        finish_group(group, rows, to, pitch, stage.from(o));
      }
  }
};

}  // namespace
}  // namespace chexnet
