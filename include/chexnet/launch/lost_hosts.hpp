// Hosts that a run was started on and that start no process any more, and how
// its next start goes on without them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/launch/self_launch.hpp"

namespace chexnet {

// The ranks that `hosts` take: `ranks_per_host` each, or as many as their slots
// where that is 0.
int ranks_on(const std::vector<HostSlots>& hosts, int ranks_per_host);

// The largest number of ranks, of `most` at most, that can share `batch` images
// in `accumulate` micro-batches each; at least 1 where one rank can.
int ranks_that_share(int64_t batch, int64_t accumulate, int most);

// "node1 slots=2", a line for each: as read_hostfile takes it.
std::string hostfile_text(const std::vector<HostSlots>& hosts);

// The command by which the launcher of `launch` starts one process that does
// nothing on each of `hosts`, which `hostfile` names.
std::vector<std::string> ask_command(const SelfLaunch& launch,
                                     const std::vector<HostSlots>& hosts,
                                     const std::string& hostfile);

// Those of `launch.hosts` on which the launcher starts nothing, asked again and
// again for `limit_s`: a host that comes back, or another one that got its
// name, counts as there. Returns at once when a stop is asked for.
std::vector<std::string> lost_hosts(const SelfLaunch& launch, double limit_s,
                                    ParentSignals& signals);

}  // namespace chexnet
