#include "architecture.hpp"

#include <cassert>
#include <string>

namespace chexnet {
namespace {

// Adds what a layer owns. The order of calls is the forward order; backward,
// and so the flat buffer, is that order turned round.
class Description {
 public:
  Description(Parameters& parameters, Init convolutions)
      : parameters_(parameters), convolutions_(convolutions) {}

  void convolution(const std::string& name, int64_t in, int64_t out,
                   int64_t kernel) {
    parameters_.add({.name = name + ".weight",
                     .shape = {out, in, kernel, kernel},
                     .init = convolutions_,
                     .is_weight = true,
                     .part = part_});
  }
  void norm(const std::string& name, int64_t channels) {
    parameters_.add_statistics(name, channels, part_);
    parameters_.add({.name = name + ".weight",
                     .shape = {channels},
                     .init = Init::kOne,
                     .part = part_});
    parameters_.add({.name = name + ".bias",
                     .shape = {channels},
                     .init = Init::kZero,
                     .part = part_});
  }
  void next_part() { ++part_; }

 private:
  Parameters& parameters_;
  Init convolutions_;
  int part_ = kStemPart;
};

// Return the channels that reach the classifier head.
int64_t describe(const DenseNetSpec& spec, Parameters& parameters) {
  Description network(parameters, Init::kNormalFanIn);
  const int64_t width = int64_t{spec.bottleneck} * spec.growth;
  int64_t channels = spec.stem;
  network.convolution("features.conv0", 3, channels, 7);
  network.norm("features.norm0", channels);

  for (size_t b = 0; b < spec.blocks.size(); ++b) {
    network.next_part();
    const std::string number = std::to_string(b + 1);
    for (int i = 0; i < spec.blocks[b]; ++i) {
      const std::string layer = "features.denseblock" + number + ".denselayer" +
                                std::to_string(i + 1);
      network.norm(layer + ".norm1", channels);
      network.convolution(layer + ".conv1", channels, width, 1);
      network.norm(layer + ".norm2", width);
      network.convolution(layer + ".conv2", width, spec.growth, 3);
      channels += spec.growth;
    }
    if (b + 1 == spec.blocks.size()) break;
    const std::string transition = "features.transition" + number;
    network.norm(transition + ".norm", channels);
    network.convolution(transition + ".conv", channels, channels / 2, 1);
    channels /= 2;
  }

  network.norm("features.norm5", channels);
  return channels;
}

// Bottlenecks: 1x1 to `width`, 3x3, 1x1 to four times that. The first of a
// stage has a convolution on its shortcut too, where the number of channels
// changes.
int64_t describe(const ResNetSpec& spec, Parameters& parameters) {
  constexpr int64_t kExpansion = 4;
  Description network(parameters, Init::kNormalFanOut);
  int64_t channels = 64;
  network.convolution("conv1", 3, channels, 7);
  network.norm("bn1", channels);

  for (size_t stage = 0; stage < spec.blocks.size(); ++stage) {
    network.next_part();
    const int64_t width = int64_t{64} << stage, out = width * kExpansion;
    for (int b = 0; b < spec.blocks[stage]; ++b) {
      const std::string block =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(b);
      network.convolution(block + ".conv1", channels, width, 1);
      network.norm(block + ".bn1", width);
      network.convolution(block + ".conv2", width, width, 3);
      network.norm(block + ".bn2", width);
      network.convolution(block + ".conv3", width, out, 1);
      network.norm(block + ".bn3", out);
      if (b == 0) {
        network.convolution(block + ".downsample.0", channels, out, 1);
        network.norm(block + ".downsample.1", out);
      }
      channels = out;
    }
  }
  return channels;
}

Init init_of(HeadSpec::Bias bias) {
  return bias == HeadSpec::Bias::kZero ? Init::kZero : Init::kUniformFanIn;
}

}  // namespace

void describe_parameters(const NetworkSpec& spec, int64_t findings,
                         Parameters& parameters) {
  assert(findings > 0 && parameters.list().empty());
  const int64_t features = std::visit(
      [&](const auto& family) { return describe(family, parameters); },
      spec.family);
  parameters.add({.name = spec.head.name + ".weight",
                  .shape = {findings, features},
                  .init = Init::kUniformFanIn,
                  .fan_in = features,
                  .is_weight = true,
                  .part = kHeadPart});
  parameters.add({.name = spec.head.name + ".bias",
                  .shape = {findings},
                  .init = init_of(spec.head.bias),
                  .fan_in = features,
                  .part = kHeadPart});
}

}  // namespace chexnet
