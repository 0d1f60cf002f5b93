// doctor's rows of the self-test: both networks, as training would compute
// them.
#pragma once

#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/launch/machine/health.hpp"
#include "chexnet/train/device.hpp"

namespace chexnet {

// Collective; seconds of computing. Rows of this rank, and what fails on any.
std::vector<CheckResult> of_self_test(Communicator& comm, const Device& device,
                                      double timeout_s);

}  // namespace chexnet
