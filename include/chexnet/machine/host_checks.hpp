// What one process of a host measures for `doctor`: driver, GPUs, limits, room
// and rate of disks.
#pragma once

#include <string>
#include <vector>

#include "chexnet/machine/health.hpp"

namespace chexnet {

struct HostCheckOptions {
  std::string folder;   // where runs will be stored; a file of 64 MiB is
                        // written, read and removed
  std::string variant;  // cuda13 or cuda12
  int ranks_here = 1;
  int visible_gpus = 0;      // that the driver shows to this process
  bool pins_memory = false;  // ranks compute on GPUs
};

// Throws nothing: what cannot be measured is a result that fails or is left
// out.
std::vector<CheckResult> check_host(const HostCheckOptions& options);

}  // namespace chexnet
