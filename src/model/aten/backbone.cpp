#include "backbone.hpp"

#include <variant>

namespace chexnet {

std::unique_ptr<Backbone> make_backbone(const LayerContext& context,
                                        const NetworkSpec& spec) {
  if (const auto* dense = std::get_if<DenseNetSpec>(&spec.family))
    return make_densenet(context, *dense);
  return make_resnet(context, std::get<ResNetSpec>(spec.family));
}

}  // namespace chexnet
