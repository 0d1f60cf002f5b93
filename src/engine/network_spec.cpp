#include "chexnet/engine/network_spec.hpp"

#include <vector>

#include "chexnet/core/error.hpp"

namespace chexnet {

NetworkSpec network_spec(const std::string& arch) {
  static const std::vector<NetworkSpec> table = {
      {"densenet121", DenseNetSpec{32, {6, 12, 24, 16}}},
      {"densenet169", DenseNetSpec{32, {6, 12, 32, 32}}},
      {"densenet201", DenseNetSpec{32, {6, 12, 48, 32}}},
      {"resnet50", ResNetSpec{{3, 4, 6, 3}}},
      {"resnet101", ResNetSpec{{3, 4, 23, 3}}},
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
  // A ResNet halves rounding up, as do the two layers of a DenseNet's stem; the pools of its three
  // transitions round down.
  if (std::holds_alternative<ResNetSpec>(spec.family)) return 1;
  constexpr int kAfterStem = 2 * 2 * 2;
  return 4 * kAfterStem - 3;
}

}  // namespace chexnet
