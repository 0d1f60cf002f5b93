// The parameters of a network, described from its spec in forward order: names,
// shapes and what they start from are torchvision's. Every back end finds its
// parameters by these names.
#pragma once

#include <cstdint>

#include "chexnet/model/engine/network_spec.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

// `findings` outputs. `parameters` is empty and not yet allocated.
void describe_parameters(const NetworkSpec& spec, int64_t findings,
                         Parameters& parameters);

}  // namespace chexnet
