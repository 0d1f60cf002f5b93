// The network from its middle map on is computed with autograd, once for each
// image; each finding is then one backward through it.
#include "chexnet/model/layer_cam.hpp"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <optional>

#include "backbone.hpp"
#include "normalization.hpp"

namespace chexnet {
namespace {

// From -3 sigma to 3 sigma; their sum is 1.
std::vector<double> gaussian(double sigma) {
  const int reach = static_cast<int>(std::ceil(3 * sigma));
  std::vector<double> weights;
  double sum = 0;
  for (int i = -reach; i <= reach; ++i) {
    weights.push_back(std::exp(-0.5 * (i / sigma) * (i / sigma)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

std::vector<float> smoothed(const std::vector<float>& values, int width,
                            int height, double sigma) {
  assert(std::ssize(values) == int64_t{width} * height && sigma > 0);
  const std::vector<double> weights = gaussian(sigma);
  const int reach = static_cast<int>(weights.size() / 2);
  const auto weight = [&](int i) {
    return weights[static_cast<size_t>(int64_t{i} + reach)];
  };
  const auto at = [&](int y, int x) {
    return static_cast<size_t>(int64_t{y} * width + x);
  };
  std::vector<double> across(values.size());
  std::vector<float> result(values.size());
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int i = -reach; i <= reach; ++i)
        across[at(y, x)] +=
            weight(i) *
            static_cast<double>(values[at(y, std::clamp(x + i, 0, width - 1))]);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double sum = 0;
      for (int i = -reach; i <= reach; ++i)
        sum += weight(i) * across[at(std::clamp(y + i, 0, height - 1), x)];
      result[at(y, x)] = static_cast<float>(sum);
    }
  return result;
}

struct LayerCam::Layers {
  explicit Layers(Network& of)
      : network(of),
        gradients(of.parameters()),
        // LibTorch's operators alone: our kernels have no autograd.
        context{of.parameters(), gradients, nullptr,
                activation_format(of.options().precision)},
        backbone(make_backbone(context, of.spec())),
        classifier(context, of.spec().head.name),
        normalization(of.options()) {}

  // The graph of one image, from its middle map to its logits.
  struct Graph {
    size_t image = 0;
    at::Tensor middle, logits;
  };
  const Graph& graph_of(size_t image) {
    if (graph && graph->image == image) return *graph;
    graph.reset();
    const at::Tensor own =
        middle.narrow(0, static_cast<int64_t>(image), 1).clone();
    own.requires_grad_(true);
    const at::Tensor features = backbone->from_middle(own, pass());
    graph = {image, own, classifier.forward(features, Mode::kInference)};
    return *graph;
  }
  ForwardPass pass() const { return {Mode::kInference, whole}; }

  Network& network;
  const MicroBatch whole;
  GradientWriter gradients;  // it gets none
  LayerContext context;
  std::unique_ptr<Backbone> backbone;
  Classifier classifier;
  PixelNormalization normalization;
  at::Tensor middle;  // [N,C,h,w]
  std::optional<Graph> graph;
};

LayerCam::LayerCam(Network& network)
    : layers_(std::make_unique<Layers>(network)) {}
LayerCam::~LayerCam() = default;

void LayerCam::compute(const at::Tensor& images) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  layers_->graph.reset();
  layers_->middle = layers_->backbone->to_middle(
      layers_->normalization.apply(images), layers_->pass());
}

int LayerCam::height() const {
  return static_cast<int>(layers_->middle.size(2));
}
int LayerCam::width() const {
  return static_cast<int>(layers_->middle.size(3));
}
MapGrid LayerCam::grid() const {
  return middle_map_grid(layers_->network.spec());
}

const at::Tensor& LayerCam::middle() const { return layers_->middle; }

at::Tensor LayerCam::gradient(size_t image, size_t finding) {
  assert(layers_->middle.defined());
  const Layers::Graph& graph = layers_->graph_of(image);
  const at::Tensor logit =
      graph.logits.select(1, static_cast<int64_t>(finding)).sum();
  return torch::autograd::grad({logit}, {graph.middle}, {}, true)[0][0];
}

std::vector<float> LayerCam::map(size_t image, size_t finding) {
  const at::Tensor slope = gradient(image, finding).to(at::kDouble);
  const at::Tensor own = middle()[static_cast<int64_t>(image)].to(at::kDouble);
  const at::Tensor heat =
      (slope.clamp_min(0) * own).sum(0).to(at::kCPU, at::kFloat).contiguous();
  const auto* first = heat.const_data_ptr<float>();
  std::vector<float> values = smoothed({first, first + heat.numel()}, width(),
                                       height(), kLayerCamSmoothing * width());
  for (float& value : values) value = std::max(value, 0.0f);
  return values;
}

}  // namespace chexnet
