// doctor's rows of what ranks and hosts are to each other. All ranks call these
// together, except ask_nccl.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
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
// NCCL's transports of all ranks, from its own log.
std::vector<CheckResult> of_nccl(Communicator& comm, const Device& device,
                                 const std::string& log);
// Before NCCL starts: its own log of this rank goes to a file whose name cannot
// be guessed; empty: there is no folder for it.
std::filesystem::path ask_nccl();

}  // namespace chexnet
