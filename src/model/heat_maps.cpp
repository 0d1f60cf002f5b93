#include "chexnet/model/heat_maps.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace chexnet {
namespace {

// In double: maps are sums over a thousand channels.
at::Tensor on_host(const at::Tensor& t) {
  return t.to(at::kCPU, at::kDouble).contiguous();
}

// weights [N,K,C]: of each channel, for each image and finding.
at::Tensor channel_weights(Network& network, const FeatureForward& forward,
                           HeatMapMethod method) {
  const at::Tensor& classifier = network.classifier_weight();
  const int64_t images = forward.logits.size(0);
  if (method == HeatMapMethod::kCam)
    return on_host(classifier.unsqueeze(0).expand({images, -1, -1}));
  std::vector<at::Tensor> of_findings;
  for (int64_t k = 0; k < classifier.size(0); ++k) {
    at::Tensor dlogits = at::zeros_like(forward.logits);
    dlogits.select(1, k).fill_(1);
    of_findings.push_back(
        network.feature_gradient(dlogits).mean(at::IntArrayRef{2, 3}));
  }
  return on_host(at::stack(of_findings, 1));
}

// `images` moved to the left and up, the border repeated.
at::Tensor moved(const at::Tensor& images, int64_t dy, int64_t dx) {
  const auto indices = [&](int dimension, int64_t by) {
    const int64_t size = images.size(dimension);
    return at::arange(by, size + by, images.options().dtype(at::kLong))
        .clamp_max(size - 1);
  };
  return images.index_select(2, indices(2, dy)).index_select(3, indices(3, dx));
}

// Puts the maps of one pass into every `shifts`-th pixel of `into` from (y, x)
// on.
void add_pass(const at::Tensor& features, const at::Tensor& weights,
              const HeatMapKind& kind, int y, int x, HeatMaps& into) {
  const auto channels = static_cast<size_t>(features.size(1));
  const auto height = static_cast<size_t>(features.size(2)),
             width = static_cast<size_t>(features.size(3));
  const size_t pixels = height * width;
  const auto shifts = static_cast<size_t>(kind.shifts);
  const auto* weight = weights.const_data_ptr<double>();
  std::vector<double> sums(pixels);
  for (size_t map = 0; map < into.images * into.findings;
       ++map, weight += channels) {
    const double* image = features.const_data_ptr<double>() +
                          map / into.findings * channels * pixels;
    std::ranges::fill(sums, 0.0);
    for (size_t c = 0; c < channels; ++c)
      for (size_t p = 0; p < pixels; ++p)
        sums[p] += weight[c] * image[c * pixels + p];
    float* to = &into.values[map * into.pixels()];
    const bool relu = kind.method == HeatMapMethod::kGradCam;
    for (size_t p = 0; p < pixels; ++p) {
      const size_t row = p / width * shifts + static_cast<size_t>(y),
                   column = p % width * shifts + static_cast<size_t>(x);
      to[row * width * shifts + column] =
          static_cast<float>(relu ? std::max(sums[p], 0.0) : sums[p]);
    }
  }
}

}  // namespace

// The logit is the mean of the unshifted map plus the bias.
double HeatMaps::bias(size_t image, size_t finding) const {
  const float* pixel = map(image, finding);
  double sum = 0;
  for (int y = 0; y < height; y += shifts)
    for (int x = 0; x < width; x += shifts)
      sum += static_cast<double>(pixel[y * width + x]);
  const int count = height / shifts * (width / shifts);
  return logits[image * findings + finding] - sum / count;
}

HeatMaps heat_maps(Network& network, const at::Tensor& images,
                   const HeatMapKind& kind) {
  assert(kind.shifts == 1 || kind.shifts == 2 || kind.shifts == 4);
  assert(kind.method != HeatMapMethod::kLayerCam);
  HeatMaps maps;
  maps.grid = network.last_map_grid();
  maps.grid.step /= kind.shifts;
  maps.shifts = kind.shifts;
  const auto by = static_cast<int64_t>(maps.grid.step);
  for (int y = 0; y < kind.shifts; ++y)
    for (int x = 0; x < kind.shifts; ++x) {
      const bool first = y == 0 && x == 0;
      const FeatureForward forward = network.forward_features(
          first ? images : moved(images, y * by, x * by));
      const at::Tensor features = on_host(forward.map);
      if (first) {
        maps.images = static_cast<size_t>(features.size(0));
        maps.findings = static_cast<size_t>(forward.logits.size(1));
        maps.height = static_cast<int>(features.size(2)) * kind.shifts;
        maps.width = static_cast<int>(features.size(3)) * kind.shifts;
        maps.values.resize(maps.images * maps.findings * maps.pixels());
        const at::Tensor logits = on_host(forward.logits);
        const auto* logit = logits.const_data_ptr<double>();
        maps.logits.assign(logit, logit + logits.numel());
      }
      add_pass(features, channel_weights(network, forward, kind.method), kind,
               y, x, maps);
    }
  return maps;
}

}  // namespace chexnet
