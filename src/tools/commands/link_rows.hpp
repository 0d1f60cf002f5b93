// doctor's rows of what ranks and hosts are to each other. All ranks call these
// together.
#pragma once

#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/nccl_log.hpp"
#include "chexnet/launch/machine/health.hpp"
#include "chexnet/train/device.hpp"

namespace chexnet {

// Equal work on every rank at the same time; the shortest of some rounds of
// each, seconds. [rank]
std::vector<double> paces(Communicator& comm, const Device& device);
// Largest difference of the hosts' clocks, seconds: read right after a barrier.
double clock_skew(Communicator& comm);
// Latency and bandwidth over MPI, or NCCL where there are GPUs.
std::vector<CheckResult> of_links(Communicator& comm, const Device& device);
// NCCL's transports of all ranks.
std::vector<CheckResult> of_nccl(const NcclReport& report);

}  // namespace chexnet
