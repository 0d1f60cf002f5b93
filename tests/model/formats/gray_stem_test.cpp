#include "chexnet/model/formats/gray_stem.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

constexpr size_t kOut = 4, kTaps = 49;

std::vector<float> drawn(size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

StemWeights drawn_stem(int64_t channels, std::mt19937& random) {
  const auto out = static_cast<int64_t>(kOut);
  return {{{out, channels, 7, 7},
           drawn(kOut * static_cast<size_t>(channels) * kTaps, random)},
          {{out}, drawn(kOut, random)}};
}

// BatchNorm's dividend for a window of gray values in 0 ... 1 that lies within
// the picture; `input` gives channel c of a pixel.
template <class Input>
double centered(const StemWeights& stem, size_t out,
                const std::vector<double>& window, const Input& input) {
  const auto channels = static_cast<size_t>(stem.weight.shape[1]);
  double sum = -stem.running_mean.values[out];
  for (size_t c = 0; c < channels; ++c)
    for (size_t tap = 0; tap < kTaps; ++tap)
      sum += stem.weight.values[(out * channels + c) * kTaps + tap] *
             input(window[tap], c);
  return sum;
}

}  // namespace

TEST_CASE(
    "the first convolution sees the same through one channel as through "
    "three") {
  std::mt19937 random(3);
  const InputScale scale;
  std::uniform_real_distribution<double> gray(0, 1);
  std::vector<double> window(kTaps);
  const auto ours = [&](double p, size_t c) {
    return (p - scale.mean[c]) / scale.std[c];
  };
  const auto theirs = [](double p, size_t) { return 1024 * (2 * p - 1); };

  const StemWeights three = drawn_stem(3, random), one = drawn_stem(1, random);
  const StemWeights three_as_one = to_gray_stem(three, scale);
  const StemWeights one_as_three = from_gray_stem(one, scale);
  CHECK(three_as_one.weight.shape == std::vector<int64_t>{4, 1, 7, 7});
  CHECK(one_as_three.weight.shape == std::vector<int64_t>{4, 3, 7, 7});
  for (int trial = 0; trial < 20; ++trial) {
    std::ranges::generate(window, [&] { return gray(random); });
    for (size_t out = 0; out < kOut; ++out) {
      CHECK(centered(three_as_one, out, window, theirs) ==
            Approx(centered(three, out, window, ours)).margin(1e-3));
      CHECK(
          centered(one_as_three, out, window, ours) ==
          Approx(centered(one, out, window, theirs)).epsilon(1e-4).margin(0.5));
    }
  }
}
