#include "chexnet/model/formats/gray_stem.hpp"

#include <cassert>

namespace chexnet {
namespace {

constexpr double kTheirWhite = 1024;
constexpr size_t kOurs = 3;  // channels

size_t extent(const StemWeights& stem, size_t dimension) {
  assert(stem.weight.shape.size() == 4);
  return static_cast<size_t>(stem.weight.shape[dimension]);
}

size_t taps(const StemWeights& stem) {
  return extent(stem, 2) * extent(stem, 3);
}

StemWeights with_channels(const StemWeights& like, size_t channels) {
  StemWeights stem;
  stem.weight.shape = like.weight.shape;
  stem.weight.shape[1] = static_cast<int64_t>(channels);
  stem.weight.values.resize(extent(like, 0) * channels * taps(like));
  stem.running_mean = like.running_mean;
  return stem;
}

}  // namespace

// x[c] = z / (2048 std[c]) + (1/2 - mean[c]) / std[c]
StemWeights to_gray_stem(const StemWeights& stem, const InputScale& scale) {
  assert(extent(stem, 1) == kOurs);
  StemWeights gray = with_channels(stem, 1);
  const size_t window = taps(stem);
  for (size_t out = 0; out < extent(stem, 0); ++out) {
    double constant = 0;
    for (size_t tap = 0; tap < window; ++tap) {
      double sum = 0;
      for (size_t c = 0; c < kOurs; ++c) {
        const double weight =
            stem.weight.values[(out * kOurs + c) * window + tap];
        sum += weight / (2 * kTheirWhite * scale.std[c]);
        constant += weight * (0.5 - scale.mean[c]) / scale.std[c];
      }
      gray.weight.values[out * window + tap] = static_cast<float>(sum);
    }
    gray.running_mean.values[out] -= static_cast<float>(constant);
  }
  return gray;
}

// z is the mean over c of 2048 (std[c] x[c] + mean[c]) - 1024.
StemWeights from_gray_stem(const StemWeights& stem, const InputScale& scale) {
  assert(extent(stem, 1) == 1);
  StemWeights ours = with_channels(stem, kOurs);
  const size_t window = taps(stem);
  for (size_t out = 0; out < extent(stem, 0); ++out) {
    double constant = 0;
    for (size_t tap = 0; tap < window; ++tap) {
      const double weight = stem.weight.values[out * window + tap];
      for (size_t c = 0; c < kOurs; ++c) {
        ours.weight.values[(out * kOurs + c) * window + tap] =
            static_cast<float>(weight * 2 * kTheirWhite * scale.std[c] / kOurs);
        constant += weight * kTheirWhite * (2 * scale.mean[c] - 1) / kOurs;
      }
    }
    ours.running_mean.values[out] -= static_cast<float>(constant);
  }
  return ours;
}

}  // namespace chexnet
