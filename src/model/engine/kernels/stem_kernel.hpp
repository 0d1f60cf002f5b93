// The first layers: 7x7 convolution of stride 2 on a gray image, BN+ReLU+3x3
// max-pool of stride 2; and the last: BN+ReLU+mean over the map. Sums and
// weights of the stem are in the accumulator's type for every storage type.
//
// The three normalized channels are a_c * gray + b_c inside the image and 0
// outside, so their convolution is one over gray with weights sum a_c w_c, and
// a constant: the sum of b_c w_c over the taps that are inside. Gray is taken
// less 128, which is exact in every type; 128 times the weights joins the
// constant. src/model/engine/stem.cpp has the padded image and the constants.
#pragma once

#include "pointwise_back.hpp"

namespace chexnet {
namespace {

template <class S, bool Pair>
struct Stem {
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;
  static constexpr int kStep = 4;  // values between two outputs of stride 2

  // `corner`, `pitch`: units of a padded image, pairs when `Pair`.
  static void conv_row(const A* corner, int64_t pitch, int width,
                       const A* weights, int outputs,
                       const StemConstants<A>& constants, S* out,
                       Moments moments) {
    constexpr int kUnits = Pair ? 2 : 1;  // values in a unit
    constexpr int kRow = kBlock / kUnits, kBetween = kStep / kUnits;
    alignas(64) A group[kGroup * kOutputs];
    int64_t offsets[kStemBlocks];
    for (int k = 0; k < kStemBlocks; ++k) offsets[k] = k * pitch;
    for (int o = 0; o < outputs; o += kOutputs)
      for (int x = 0; x < width; x += kGroup) {
        const int n = std::min(kGroup, width - x);
        for (int i = 0; i < n; ++i)
          prefetch_for_writing(out + (x + i) * outputs + o);
        multiply_group<A, Pair, kBetween, kRow>(
            corner + x * kBetween, offsets, kStemBlocks,
            weights + o * kStemBlocks * kRow, n, group);
        for (int i = 0; i < n; ++i) {
          const A* constant =
              constants.values + constants.place[x + i] * outputs + o;
          for (int c = 0; c < kOutputs; c += L) {
            A* at = group + i * kOutputs + c;
            store(at, load(at) + load(constant + c));
          }
        }
        store_group(group, n, out + x * outputs + o, outputs, moments.from(o));
      }
  }

  // Calls use(k, pixel) for the window's pixels inside the map, k = 3 * ky +
  // kx.
  template <class Use>
  static CHEXNET_INLINE void each_in_window(int height, int width, int py,
                                            int px, const Use& use) {
    for (int ky = 0; ky < 3; ++ky)
      for (int kx = 0; kx < 3; ++kx) {
        const int y = 2 * py + ky - 1, x = 2 * px + kx - 1;
        if (y >= 0 && y < height && x >= 0 && x < width)
          use(3 * ky + kx, static_cast<int64_t>(y) * width + x);
      }
  }

  // Row `py` of the pooled map. `chosen` [pooled width][channels]: the index in
  // the window of the first largest value; may be null.
  static void pool_row(const FeatureMap<S>& map, int height, int width, int py,
                       S* out, int64_t pitch, uint8_t* chosen,
                       Moments moments) {
    const int pooled = (width - 1) / 2 + 1;
    for (int c = 0; c < map.channels; c += L) {
      const Vec<A> scale = load(map.scale + c), shift = load(map.shift + c);
      Vec<A> origin = {};
      ShiftedSums<A> sums(origin);
      for (int px = 0; px < pooled; ++px) {
        Vec<A> best = splat(A(-1)), index = {};  // below every value of a relu
        each_in_window(height, width, py, px, [&](int k, int64_t p) {
          const Vec<A> v =
              relu(load(map.x + p * map.pitch + c) * scale + shift);
          const auto more = !(v <= best);  // NaN wins, as in PyTorch
          best = more ? v : best;
          index = more ? splat(A(k)) : index;
        });
        const Vec<A> v = as_stored<S>(best);
        store(out + px * pitch + c, v);
        if (px == 0) sums = ShiftedSums<A>(v);
        sums.add(v);
        if (chosen != nullptr)
          store_bytes(chosen + px * map.channels + c, index);
      }
      if (moments.sum != nullptr) sums.add_to(moments, c);
    }
  }

  // Row `y` of the gradient of the pool's input.
  static void scatter_row(const GradientMap<S>& pooled_gradient,
                          int64_t first_pixel, int height, int width, int y,
                          const uint8_t* chosen, Panel<A> panel) {
    const int pooled = (width - 1) / 2 + 1,
              pooled_height = (height - 1) / 2 + 1;
    for (int c = 0; c < pooled_gradient.channels; c += L) {
      A* row = panel.units + (c / kBlock) * panel.rows * kBlock + c % kBlock;
      for (int x = 0; x < width; ++x) store(row + x * kBlock, Vec<A>{});
      // Windows that hold row y: 2 py - 1 <= y <= 2 py + 1.
      for (int py = y / 2; py <= (y + 1) / 2 && py < pooled_height; ++py)
        for (int px = 0; px < pooled; ++px) {
          const int64_t at = static_cast<int64_t>(py) * pooled + px;
          const Vec<A> d = PointwiseBack<S, false>::gradient_at(
              pooled_gradient, first_pixel + at, c);
          const Vec<A> place =
              load_bytes<A>(chosen + at * pooled_gradient.channels + c);
          for (int kx = 0; kx < 3; ++kx) {
            const int x = 2 * px + kx - 1;
            if (x < 0 || x >= width) continue;
            const Vec<A> here =
                splat(static_cast<A>(3 * (y - 2 * py + 1) + kx));
            store(row + x * kBlock,
                  load(row + x * kBlock) + (place == here ? d : Vec<A>{}));
          }
        }
    }
  }
  static void sums_row(Panel<A> panel, const FeatureMap<S>& map, const A* mean,
                       int width, double* sum, double* product) {
    for (int c = 0; c < map.channels; c += L) {
      const Vec<A> scale = load(map.scale + c), shift = load(map.shift + c),
                   center = load(mean + c);
      Vec<A> s = {}, p = {};
      for (int x = 0; x < width; ++x) {
        const Vec<A> value = load(map.x + x * map.pitch + c);
        const Vec<A> open =
            gated(value * scale + shift, get_by_channels(panel, x, c));
        s += open;
        p = open * (value - center) + p;
      }
      add_wide(sum + c, s);
      add_wide(product + c, p);
    }
  }
  static void gradient_row(Panel<A> panel, const FeatureMap<S>& map, const A* a,
                           const A* b, const A* constant, int width,
                           const uint8_t* place, double* sums) {
    for (int c = 0; c < map.channels; c += L) {
      const Vec<A> scale = load(map.scale + c), shift = load(map.shift + c);
      const Vec<A> va = load(a + c), vb = load(b + c), vc = load(constant + c);
      Vec<A> sum = {};
      for (int x = 0; x < width; ++x) {
        const Vec<A> value = load(map.x + x * map.pitch + c);
        const Vec<A> open =
            gated(value * scale + shift, get_by_channels(panel, x, c));
        const Vec<A> d = open * va + (value * vb + vc);
        put_by_channels<S, false>(panel, x, c, d);
        sum += d;
        if (x + 1 == width || place[x + 1] != place[x]) {
          add_wide(sums + place[x] * map.channels + c, sum);
          sum = Vec<A>{};
        }
      }
    }
  }

  // w[o][blocks][16] += sum over a row of dy[x][o] * image[2x ..][16]
  static constexpr int kRows = kVectorBytes == 64 ? 4 : 2;
  static __attribute__((noinline)) void gradient_tile(
      const A* __restrict dy, const A* __restrict corner, int64_t pitch,
      int width, A* __restrict w) {
    Vec<A> sum[kRows][kStemBlocks];
#pragma GCC unroll 4
    for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 4
      for (int k = 0; k < kStemBlocks; ++k)
        sum[o][k] = load(w + (o * kStemBlocks + k) * kBlock);
    for (int x = 0; x < width; ++x) {
      Vec<A> d[kRows];
#pragma GCC unroll 4
      for (int o = 0; o < kRows; ++o) d[o] = splat(dy[x * kBlock + o]);
#pragma GCC unroll 4
      for (int k = 0; k < kStemBlocks; ++k) {
        const Vec<A> v = load(corner + k * pitch + x * kStep);
#pragma GCC unroll 4
        for (int o = 0; o < kRows; ++o) sum[o][k] = d[o] * v + sum[o][k];
      }
    }
#pragma GCC unroll 4
    for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 4
      for (int k = 0; k < kStemBlocks; ++k)
        store(w + (o * kStemBlocks + k) * kBlock, sum[o][k]);
  }
  static void weight_gradient_row(Panel<A> dy, const A* corner, int64_t pitch,
                                  int width, int outputs, A* w) {
    for (int o = 0; o < outputs; o += kRows)
      for (int lane = 0; lane < kBlock; lane += L)
        gradient_tile(dy.units + (o / kBlock) * dy.rows * kBlock + o % kBlock,
                      corner + lane, pitch, width,
                      w + o * kStemBlocks * kBlock + lane);
  }

  static void residual(const FeatureMap<S>& main, const FeatureMap<S>& other,
                       int64_t first, int n, S* out) {
    for (int64_t p = first; p < first + n; ++p)
      for (int c = 0; c < main.channels; c += L) {
        const Vec<A> a =
            load(main.x + p * main.pitch + c) * load(main.scale + c) +
            load(main.shift + c);
        const Vec<A> b =
            load(other.x + p * other.pitch + c) * load(other.scale + c) +
            load(other.shift + c);
        store(out + p * main.channels + c, relu(a + b));
      }
  }
  static void residual_sums(const S* d, const S* x, int channels, const A* mean,
                            int64_t first, int n, double* sum,
                            double* product) {
    for (int c = 0; c < channels; c += L) {
      const Vec<A> center = load(mean + c);
      Vec<A> s = {}, p = {};
      for (int64_t i = first; i < first + n; ++i) {
        const Vec<A> v = load(d + i * channels + c);
        s += v;
        p = v * (load(x + i * channels + c) - center) + p;
      }
      add_wide(sum + c, s);
      add_wide(product + c, p);
    }
  }

  // features[c] = mean over `pixels` pixels from `first` of the normalized map.
  static void mean(const FeatureMap<S>& map, int64_t first, int pixels,
                   A* features) {
    for (int c = 0; c < map.channels; c += L) {
      const Vec<A> scale = load(map.scale + c), shift = load(map.shift + c);
      Vec<A> sum = {};
      for (int p = 0; p < pixels; ++p)
        sum += relu(load(map.x + (first + p) * map.pitch + c) * scale + shift);
      store(features + c, sum * splat(A(1) / static_cast<A>(pixels)));
    }
  }
  static void mean_back(const A* dfeatures, int64_t first, int pixels,
                        const GradientEpilogue<S>& epilogue) {
    for (int c = epilogue.first; c < epilogue.last; c += L) {
      EpilogueLane<S> lane(epilogue, c);
      const Vec<A> d =
          load(dfeatures + c) * splat(A(1) / static_cast<A>(pixels));
      for (int p = 0; p < pixels; ++p)
        lane.template pass<AccumulateMode::kStore>(epilogue, first + p, d);
      lane.finish(epilogue, c);
    }
  }
};

}  // namespace
}  // namespace chexnet
