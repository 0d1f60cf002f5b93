// Ranks that are started with different commands (`mpirun … : …`) would train
// or score different things together.
#pragma once

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"

namespace chexnet {

// ConfigError, on all ranks, where a rank's config differs from rank 0's: names
// the first such rank, its host, the keys and both values. Settings that may
// differ per host are not compared: paths, and those that depend on its cores
// and network. Collective.
void check_same_config(Communicator& comm, const Config& config);

}  // namespace chexnet
