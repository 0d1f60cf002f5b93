#include "chexnet/model/engine/network_spec.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <variant>

#include "chexnet/core/error.hpp"

namespace chexnet {

namespace {

using Family = std::variant<DenseNetSpec, ResNetSpec>;

NetworkSpec row(Architecture arch, Family family) {
  // torchvision zeroes the bias of a DenseNet's classifier and leaves that of a
  // ResNet's as it was drawn.
  const bool dense = std::holds_alternative<DenseNetSpec>(family);
  const HeadSpec head = dense ? HeadSpec{"classifier", HeadSpec::Bias::kZero}
                              : HeadSpec{"fc", HeadSpec::Bias::kUniform};
  return {choice_name(arch), family, head};
}

}  // namespace

NetworkSpec network_spec(Architecture arch) {
  using enum Architecture;
  switch (arch) {
    case kDenseNet121:
      return row(arch, DenseNetSpec{32, {6, 12, 24, 16}});
    case kDenseNet169:
      return row(arch, DenseNetSpec{32, {6, 12, 32, 32}});
    case kDenseNet201:
      return row(arch, DenseNetSpec{32, {6, 12, 48, 32}});
    case kResNet50:
      return row(arch, ResNetSpec{{3, 4, 6, 3}});
    case kResNet101:
      return row(arch, ResNetSpec{{3, 4, 23, 3}});
  }
  assert(false && "a network without a row");
  return {};
}

NetworkSpec network_spec(const std::string& arch) {
  const auto known = find_choice<Architecture>(arch);
  if (known) return network_spec(*known);
  throw ConfigError("[model] no network '{}'. Hint: nearest are {}", arch,
                    nearest_names(arch, choice_names<Architecture>()));
}

// A ResNet halves rounding up, as do the two layers of a DenseNet's stem; the
// pools of its three transitions round down.
int last_map_side(const NetworkSpec& spec, int side) {
  assert(side > 0);
  const bool pools = std::holds_alternative<DenseNetSpec>(spec.family);
  for (int halved = 0; halved < 5; ++halved)
    side = halved < 2 || !pools ? (side + 1) / 2 : side / 2;
  return side;
}

int smallest_input(const NetworkSpec& spec) {
  if (std::holds_alternative<ResNetSpec>(spec.family)) return 1;
  constexpr int kAfterStem = 2 * 2 * 2;
  return 4 * kAfterStem - 3;
}

namespace {

// Of a convolution with k x k taps on a map of `side` x `side` results.
double convolution(int side, int taps, int in, int out) {
  return 1.0 * side * side * taps * taps * in * out;
}

// Of each block.
std::array<double, 4> multiply_adds(const DenseNetSpec& spec, int side) {
  std::array<double, 4> sums{};
  int channels = spec.stem;
  const int bottleneck = spec.bottleneck * spec.growth;
  for (size_t b = 0; b < spec.blocks.size(); ++b) {
    for (int layer = 0; layer < spec.blocks[b];
         ++layer, channels += spec.growth)
      sums[b] += convolution(side, 1, channels, bottleneck) +
                 convolution(side, 3, bottleneck, spec.growth);
    if (b + 1 == spec.blocks.size()) break;
    sums[b] +=
        convolution(side, 1, channels, channels / 2);  // the pool follows
    channels /= 2;
    side /= 2;
  }
  return sums;
}

std::array<double, 4> multiply_adds(const ResNetSpec& spec, int side) {
  std::array<double, 4> sums{};
  int in = 64, width = 64;
  for (size_t stage = 0; stage < spec.blocks.size(); ++stage) {
    const int out = 4 * width;
    double& sum = sums[stage];
    for (int block = 0; block < spec.blocks[stage]; ++block, in = out) {
      const int before = side;
      if (block == 0 && width > 64) side = (side + 1) / 2;
      sum += convolution(before, 1, in, width) +
             convolution(side, 3, width, width) +
             convolution(side, 1, width, out);
      if (block == 0) sum += convolution(side, 1, in, out);
    }
    width *= 2;
  }
  return sums;
}

}  // namespace

double forward_multiply_adds(const NetworkSpec& spec, int side,
                             int first_part) {
  const int stem = (side + 1) / 2;
  const std::array<double, 4> blocks = std::visit(
      [&](const auto& family) { return multiply_adds(family, (stem + 1) / 2); },
      spec.family);
  double sum = first_part == kStemPart ? convolution(stem, 7, 3, 64) : 0;
  for (int part = std::max(first_part, 1); part < kHeadPart; ++part)
    sum += blocks[static_cast<size_t>(part) - 1];
  return sum;
}

namespace {

MapGrid grid_behind(const NetworkSpec& spec, int halvings) {
  MapGrid grid{0.5, 4};  // after the stem
  const bool pools = std::holds_alternative<DenseNetSpec>(spec.family);
  for (int halved = 0; halved < halvings; ++halved) {
    if (pools) grid.first += grid.step / 2;
    grid.step *= 2;
  }
  return grid;
}

}  // namespace

MapGrid last_map_grid(const NetworkSpec& spec) { return grid_behind(spec, 3); }
MapGrid middle_map_grid(const NetworkSpec& spec) {
  return grid_behind(spec, 1);
}

}  // namespace chexnet
