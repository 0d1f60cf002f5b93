// What ranks need before they can start: rows of doctor, checks of a start.
#pragma once

#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/launch/machine/health.hpp"
#include "chexnet/launch/start_checks.hpp"

namespace chexnet {

// The library that ranks of `mpirun` load. Loads it.
CheckResult of_mpi_library(const LaunchConfig& config, const Mpirun& mpirun,
                           bool needed);
// `needed`: several ranks are to be started; `here`: on this host.
std::vector<CheckResult> of_start(const LaunchConfig& config, bool needed,
                                  bool here);
bool wants_ranks(const LaunchConfig& config);
// For rows of this process alone, where ranks cannot start.
LaunchConfig one_rank(LaunchConfig config);

}  // namespace chexnet
