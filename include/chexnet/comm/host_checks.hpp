// What one process of a host measures for `doctor`: driver, GPUs, limits, room and rate of disks.
#pragma once

#include <string>
#include <vector>

#include "chexnet/machine/health.hpp"

namespace chexnet {

// `folder`: where runs will lie; a file of 64 MiB is written there, read back and removed.
// `variant`: cuda13 or cuda12. `pins_memory`: ranks compute on GPUs.
std::vector<CheckResult> check_host(const std::string& folder, const std::string& variant,
                                    int ranks_here, bool pins_memory);

}  // namespace chexnet
