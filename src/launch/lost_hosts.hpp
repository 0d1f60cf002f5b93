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

struct RankShare {
  int ranks = 1;
  int64_t accumulate = 1;  // micro-batches of each
};
// How ranks that are left share a batch which `before.ranks` shared: the
// largest number of them, of `most` at most, for which there is a number of
// micro-batches that makes none larger than before, as it may not fit into
// memory, nor smaller than half of that (of two images: not smaller), as
// BatchNorm's statistics are of one.
RankShare ranks_that_share(int64_t batch, RankShare before, int most);

// "node1 slots=2", a line for each: as read_hostfile takes it.
std::string hostfile_text(const std::vector<HostSlots>& hosts);

// The command by which the launcher of `launch` starts one process that does
// nothing on each of `hosts`.
std::vector<std::string> probe_command(const SelfLaunch& launch,
                                       const std::vector<HostSlots>& hosts);

// Those of `launch.hosts` on which the launcher starts nothing, tried again and
// again for `limit_s`: a host that comes back, or another one that got its
// name, counts as there. Returns at once when a stop is requested.
std::vector<std::string> lost_hosts(const SelfLaunch& launch, double limit_s,
                                    ParentSignals& signals);

}  // namespace chexnet
