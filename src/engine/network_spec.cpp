#include "chexnet/engine/network_spec.hpp"

#include <vector>

#include "chexnet/core/error.hpp"

namespace chexnet {

NetworkSpec network_spec(const std::string& arch) {
  // torchvision zeroes the bias of a DenseNet's classifier and leaves that of a
  // ResNet's as it was drawn.
  static const HeadSpec dense_head = {"classifier", HeadSpec::Bias::kZero};
  static const HeadSpec res_head = {"fc", HeadSpec::Bias::kUniform};
  static const std::vector<NetworkSpec> table = {
      {"densenet121", DenseNetSpec{32, {6, 12, 24, 16}}, dense_head},
      {"densenet169", DenseNetSpec{32, {6, 12, 32, 32}}, dense_head},
      {"densenet201", DenseNetSpec{32, {6, 12, 48, 32}}, dense_head},
      {"resnet50", ResNetSpec{{3, 4, 6, 3}}, res_head},
      {"resnet101", ResNetSpec{{3, 4, 23, 3}}, res_head},
  };
  std::vector<std::string> known;
  for (const auto& spec : table) {
    if (spec.arch == arch) return spec;
    known.push_back(spec.arch);
  }
  throw ConfigError("[model] no network '" + arch + "'. Hint: nearest are " +
                    nearest_names(arch, known));
}

int smallest_input(const NetworkSpec& spec) {
  // A ResNet halves rounding up, as do the two layers of a DenseNet's stem; the
  // pools of its three transitions round down.
  if (std::holds_alternative<ResNetSpec>(spec.family)) return 1;
  constexpr int kAfterStem = 2 * 2 * 2;
  return 4 * kAfterStem - 3;
}

MapGrid last_map_grid(const NetworkSpec& spec) {
  MapGrid grid{0.5, 4};  // behind the stem
  const bool pools = std::holds_alternative<DenseNetSpec>(spec.family);
  for (int halved = 0; halved < 3; ++halved) {
    if (pools) grid.first += grid.step / 2;
    grid.step *= 2;
  }
  return grid;
}

}  // namespace chexnet
