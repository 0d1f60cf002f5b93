// doctor's rows of what each host has: cores of its ranks, GPUs, limits, disks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/launch/machine/health.hpp"
#include "chexnet/train/device.hpp"

namespace chexnet {

struct HostChecks {
  std::set<std::string> names;
  std::vector<CheckResult> checks;
};

// One rank of each host checks it; all ranks get all rows. `folder`: where runs
// will be stored; `gpu_problem`: what keeps this host's GPUs from being used.
// Collective.
HostChecks of_hosts(const std::string& folder, Communicator& comm,
                    const Device& device, const GpuProblem& gpu_problem);

}  // namespace chexnet
