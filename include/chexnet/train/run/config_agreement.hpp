// Ranks that are started with different commands (`mpirun … : …`) would train
// or score different things together.
#pragma once

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"

namespace chexnet {

// ConfigError, on all ranks, where a rank's config differs from rank 0's: names
// the first such rank, its host, the keys and both values. What a host may have
// for itself is not compared: places in its file system, and what its cores and
// network ask for. Collective.
void check_same_config(Communicator& comm, const Config& config);

}  // namespace chexnet
