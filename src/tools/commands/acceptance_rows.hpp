// doctor --acceptance: measures the figures for which the site file has
// thresholds.
#pragma once

#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/tools/doctor/acceptance.hpp"
#include "chexnet/train/device.hpp"

namespace chexnet {

// Collective: each host's disk in `folder`, GPUs and driver, a training step
// and an all-reduce of all ranks. `self_test`: rows of the self-test.
std::vector<AcceptanceRow> measure_acceptance(
    const NodeThresholds& wanted, const std::string& folder,
    const std::vector<CheckResult>& self_test, Communicator& comm,
    const Device& device);

}  // namespace chexnet
