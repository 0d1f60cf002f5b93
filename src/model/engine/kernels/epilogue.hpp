// Takes a group of up to 14 pixels x 32 outputs from the registers: stores it
// with the statistics of its channels, or, in backward, sends it through ReLU
// with BatchNorm's two sums.
#pragma once

#include "multiply.hpp"
#include "panel.hpp"

namespace chexnet {
namespace {

// Sums of values v - shift for one vector of channels, brought back to sums of
// v in double. The shift, any value of the channel, keeps digits where the mean
// is large against the deviation.
template <class A>
struct ShiftedSums {
  static constexpr int L = kLanes<A>;
  Vec<A> shift, sum = {}, square = {};
  int count = 0;
  explicit ShiftedSums(Vec<A> first) : shift(first) {}
  CHEXNET_INLINE void add(Vec<A> v) {
    const Vec<A> d = v - shift;
    sum += d;
    square = d * d + square;
    ++count;
  }
  void add_to(const Moments& moments, int channel) const {
    double* to_sum = moments.sum + channel;
    double* to_square = moments.square + channel;
    for (int i = 0; i < L; ++i) {
      const double k = shift[i], s = sum[i];
      to_sum[i] += s + count * k;
      to_square[i] += square[i] + k * (2 * s + count * k);
    }
  }
};

template <class S, class A = Accumulator<S>>
void store_group(const A* group, int rows, S* out, int64_t pitch,
                 Moments moments) {
  if (moments.sum == nullptr) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < kOutputs; c += kLanes<A>)
        store(out + r * pitch + c, load(group + r * kOutputs + c));
    return;
  }
  for (int c = 0; c < kOutputs; c += kLanes<A>) {
    ShiftedSums<A> sums(as_stored<S>(load(group + c)));
    for (int r = 0; r < rows; ++r) {
      const Vec<A> v = as_stored<S>(load(group + r * kOutputs + c));
      store(out + r * pitch + c, v);
      sums.add(v);
    }
    sums.add_to(moments, c);
  }
}

template <class S, class A = Accumulator<S>>
void finish_group(const A* group, int rows, S* out, int64_t pitch,
                  const OutputStage<S>& stage) {
  if (stage.scale == nullptr)
    return store_group<S>(group, rows, out, pitch, stage.moments);
  for (int c = 0; c < kOutputs; c += kLanes<A>) {
    const Vec<A> scale = load(stage.scale + c), shift = load(stage.shift + c);
    for (int r = 0; r < rows; ++r)
      store(out + r * pitch + c,
            relu(load(group + r * kOutputs + c) * scale + shift));
  }
}

// 32 channels of a pixel that an epilogue will soon read: into L1, or with a
// locality of 2 into L2.
template <int Locality = 3, class S>
CHEXNET_INLINE void prefetch_outputs(const S* at) {
  for (int c = 0; c < kOutputs; c += 64 / static_cast<int>(sizeof(S)))
    __builtin_prefetch(at + c, 0, Locality);
}

// The same of a pixel that will soon be stored.
template <class S>
CHEXNET_INLINE void prefetch_for_writing(const S* at) {
  for (int c = 0; c < kOutputs; c += 64 / static_cast<int>(sizeof(S)))
    __builtin_prefetch(at + c, 1);
}

// One vector of channels of an epilogue: constants and accumulating sums.
template <class S>
struct EpilogueLane {
  using A = Accumulator<S>;
  Vec<A> scale, shift, mean, multiplier, sum = {}, product = {};
  const S* x;
  S* d;
  EpilogueLane(const GradientEpilogue<S>& epilogue, int channel)
      : scale(load(epilogue.map.scale + channel)),
        shift(load(epilogue.map.shift + channel)),
        mean(load(epilogue.mean + channel)),
        multiplier(load(epilogue.multiplier + channel)),
        x(epilogue.map.x + channel),
        d(epilogue.d + channel) {}
  // Gradient dy of the normalized value at `pixel`; returns that value.
  template <AccumulateMode How>
  CHEXNET_INLINE Vec<A> pass(const GradientEpilogue<S>& epilogue, int64_t pixel,
                             Vec<A> dy) {
    const Vec<A> value = load(x + pixel * epilogue.map.pitch);
    const Vec<A> before = value * scale + shift;
    S* to = d + pixel * epilogue.d_pitch;
    if constexpr (How == AccumulateMode::kAddBeforeRelu) dy += load(to);
    const Vec<A> open = gated(before, dy);
    sum += open;
    product = open * (value - mean) + product;
    if constexpr (How == AccumulateMode::kAdd)
      store(to, open * multiplier + load(to));
    else
      store(to, open * multiplier);
    return relu(before);
  }
  void finish(const GradientEpilogue<S>& epilogue, int channel) const {
    add_wide(epilogue.sum + channel, sum);
    add_wide(epilogue.product + channel, product);
  }
};

}  // namespace
}  // namespace chexnet
