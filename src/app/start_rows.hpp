// doctor's rows of what ranks need before they can start.
#pragma once

#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/machine/health.hpp"

namespace chexnet {

// `needed`: several ranks are to be started; `here`: on this host.
std::vector<CheckResult> of_start(const LaunchConfig& config, bool needed,
                                  bool here);
bool wants_ranks(const LaunchConfig& config);
// For rows of this process alone, where ranks cannot start.
LaunchConfig one_rank(LaunchConfig config);

}  // namespace chexnet
