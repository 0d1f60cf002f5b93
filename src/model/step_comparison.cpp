// Why the first disagreement names the layer: what a layer computes shows in
// the statistics of the next BatchNorm, and every later one follows it. Where
// all statistics and the logits agree, forward was right, and the first wrong
// gradient on the way back is that of the layer that computed it, or of the
// layer after it that handed it on.
#include "chexnet/model/step_comparison.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "chexnet/core/philox.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/model/loss.hpp"

namespace chexnet {
namespace {

constexpr int64_t kImages = 4, kPixels = 64;
constexpr uint64_t kSeed = 3;
constexpr double kPositives = 0.2;  // of the labels

// Standard deviations by which a channel's values lie above ReLU's corner, or,
// one channel in four, below it.
constexpr double kFromCorner = 2.5;
constexpr int64_t kEvery = 4;
// Of a normalized residual branch, which has no ReLU: small beside the
// shortcut, which is positive.
constexpr double kBranchScale = 0.25;
// fp16 gradients of one step without this would be below its smallest numbers.
constexpr double kFp16Scale = 1024;

// Relative differences that are allowed. Correct computations by ATen's
// operators on CPUs differed from the engine's in fp64 by at most (DenseNet-121
// and ResNet-50, two sets of images; worst layer of forward, and of gradients):
//   fp64 1e-12 1e-12   fp32 2e-6 6e-4   fp16 2e-3 0.05   bf16 1.4e-2 0.29
// In fp32 a single value that falls on the other side of ReLU's corner moves
// the gradients of a small layer by 1e-4 to 3e-3. Another order of sums, as a
// GPU's, moves the rest by a small factor. A layer that computes something else
// differs by about 1.
struct Tolerance {
  double forward, gradients;
};
Tolerance tolerance_of(Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return {1e-9, 1e-9};
    case Precision::kFp32:
      return {1e-4, 1e-2};
    case Precision::kTf32:  // as many bits as fp16
    case Precision::kFp16:
      return {0.02, 0.3};
    case Precision::kBf16:
      return {0.1, 0.7};
  }
  return {};
}

at::Tensor synthetic_images() {
  at::Tensor images = at::empty({kImages, 1, kPixels, kPixels}, at::kByte);
  Random random(kSeed, Purpose::kTest, 0);
  auto* pixels = images.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < images.numel(); ++i)
    pixels[i] = static_cast<uint8_t>(random.below(256));
  return images;
}

at::Tensor synthetic_labels(int64_t findings) {
  at::Tensor labels = at::empty({kImages, findings}, at::kFloat);
  Random random(kSeed, Purpose::kTest, 1);
  auto* values = labels.mutable_data_ptr<float>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    values[i] = random.chance(kPositives) ? 1.0f : 0.0f;
  return labels;
}

void set_parameters(Parameters& p) {
  p.initialize(kSeed);
  for (const auto& parameter : p.list()) {
    at::Tensor values = p.flat_values().narrow(0, parameter.begin,
                                               parameter.end - parameter.begin);
    const bool branch = parameter.name.find("bn3.") != std::string::npos;
    if (branch && parameter.name.ends_with(".weight"))
      values.fill_(kBranchScale);
    const bool shifts = !parameter.is_head() && !parameter.is_weight &&
                        parameter.name.ends_with(".bias");
    if (!shifts || branch) continue;
    values.fill_(kFromCorner);
    values.slice(0, kEvery - 1, values.numel(), kEvery).fill_(-kFromCorner);
  }
  p.refresh_compute_copies();
  p.flat_running().zero_();
}

at::Tensor doubles_of(const at::Tensor& t) {
  return t.to(at::kCPU, at::kDouble).clone();
}

double relative(const at::Tensor& found, const at::Tensor& reference,
                double scale) {
  return at::linalg_vector_norm(found - reference).item<double>() / scale;
}
double length(const at::Tensor& t) {
  return at::linalg_vector_norm(t).item<double>();
}

// NaN in either makes NaN.
double larger(double a, double b) { return a > b || std::isnan(a) ? a : b; }

// A mean is compared relative to the spread of its values: it may itself be
// nothing but rounding.
double statistics_difference(const at::Tensor& found,
                             const at::Tensor& reference,
                             const Statistics& layer, int64_t begin) {
  const auto part = [&](const at::Tensor& flat, int64_t half) {
    return flat.narrow(0, begin + layer.begin + half * layer.channels,
                       layer.channels);
  };
  const at::Tensor mean = part(reference, 0), var = part(reference, 1);
  return larger(
      relative(part(found, 0), mean, length(mean) + length(var.sqrt())),
      relative(part(found, 1), var, length(var)));
}

std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// With each weight in row-major order, however this network stores it.
at::Tensor row_major(const at::Tensor& flat, const Parameters& layout) {
  at::Tensor ordered = flat.clone();
  for (const auto& p : layout.list())
    ordered.narrow(0, p.begin, p.end - p.begin)
        .copy_(layout.part(flat, p).reshape({-1}));
  return ordered;
}

}  // namespace

StepRecord record_synthetic_step(Network& network) {
  Parameters& p = network.parameters();
  set_parameters(p);
  const at::Tensor images = synthetic_images();
  const at::Tensor logits = network.forward(images, Mode::kTraining);

  const int64_t findings = logits.size(1);
  const LossWeights weights{
      std::vector<double>(static_cast<size_t>(findings), 1.0),
      std::vector<double>(static_cast<size_t>(findings), 1.0)};
  const BatchLoss loss(weights, p.flat_values().options());
  const double scale =
      network.options().precision == Precision::kFp16 ? kFp16Scale : 1;
  const LossResult result =
      loss(logits,
           synthetic_labels(findings).to(logits.device(), logits.scalar_type()),
           scale, static_cast<double>(logits.numel()));
  network.backward(result.dlogits);

  StepRecord record{doubles_of(logits),
                    row_major(doubles_of(p.flat_gradients_and_statistics()), p),
                    {}};
  record.gradients.narrow(0, 0, p.size()).div_(scale);
  p.update_running(at::zeros({}, p.flat_values().options()), 0, 1.0);
  record.evaluation = doubles_of(network.forward(images, Mode::kInference));
  return record;
}

std::vector<LayerDifference> layer_differences(const StepRecord& found,
                                               const StepRecord& reference,
                                               const Parameters& layout,
                                               Precision precision) {
  assert(found.gradients.numel() == reference.gradients.numel());
  const Tolerance allowed = tolerance_of(precision);
  std::vector<LayerDifference> layers;
  for (const auto& s : layout.statistics())
    layers.push_back(
        {s.name, "statistics",
         statistics_difference(found.gradients, reference.gradients, s,
                               layout.size()),
         allowed.forward});
  const auto add_logits = [&](const std::string& name, const at::Tensor& a,
                              const at::Tensor& b) {
    layers.push_back(
        {name, "logits", relative(a, b, length(b)), allowed.forward});
  };
  add_logits("logits", found.logits, reference.logits);

  // Weight and bias of a layer as one vector: that of a bias alone may cancel
  // to nothing, where the next BatchNorm takes the mean away.
  const auto& list = layout.list();
  for (size_t i = 0; i < list.size();) {
    const std::string layer = layer_of(list[i].name);
    size_t last = i;
    while (last + 1 < list.size() && layer_of(list[last + 1].name) == layer)
      ++last;
    const int64_t begin = list[i].begin, size = list[last].end - begin;
    const at::Tensor wanted = reference.gradients.narrow(0, begin, size);
    layers.push_back({layer, "gradients",
                      relative(found.gradients.narrow(0, begin, size), wanted,
                               length(wanted)),
                      allowed.gradients});
    i = last + 1;
  }
  add_logits("logits of evaluation", found.evaluation, reference.evaluation);
  return layers;
}

std::string difference_text(double difference) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", difference);
  return text;
}

std::string first_disagreement(const std::vector<LayerDifference>& layers) {
  const auto wrong = std::ranges::find_if(
      layers, [](const LayerDifference& layer) { return !layer.agrees(); });
  if (wrong == layers.end()) return "";
  const auto text = [](const LayerDifference& layer) {
    return layer.what == "logits" ? layer.layer
                                  : layer.what + " of " + layer.layer;
  };
  const std::string before = wrong == layers.begin()
                                 ? "nothing before agrees"
                                 : text(*std::prev(wrong)) + " still agree";
  return formatted(
      "{} differ by {} of their norm, where rounding explains {} ({})",
      text(*wrong), difference_text(wrong->difference),
      difference_text(wrong->allowed), before);
}

const LayerDifference& worst_of(const std::vector<LayerDifference>& layers) {
  assert(!layers.empty());
  return *std::ranges::max_element(
      layers, [](const LayerDifference& a, const LayerDifference& b) {
        return !std::isnan(a.of_allowed()) &&
               (std::isnan(b.of_allowed()) || a.of_allowed() < b.of_allowed());
      });
}

}  // namespace chexnet
