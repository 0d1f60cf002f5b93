// Whether the launcher put the ranks of a host on the right cores, and where
// they belong. Pure decisions over what every rank of the host reports.
//
// A rank with a GPU belongs on the NUMA node (else the socket) its GPU hangs
// from; ranks of one region share its cores evenly, whole cores each.
#pragma once

#include <string>
#include <vector>

#include "chexnet/launch/machine/topology.hpp"

namespace chexnet {

// One rank of this host, as it finds itself.
struct RankAffinity {
  std::vector<int> cpus;  // its affinity, read back from the kernel; ascending
  std::string gpu_uuid;   // empty: computes on the CPU
};

enum class Binding {
  kGood,
  kFar,     // no core of its GPU's socket
  kShared,  // its cores are also another rank's
  kWide,    // spans more than its GPU's region
  // One core where it could have several, as mpirun binds up to two ranks by
  // default.
  kNarrow,
};

// The decision for one rank.
struct Placement {
  Binding found = Binding::kGood;
  std::string reason;     // for people; empty when good
  std::vector<int> cpus;  // where it belongs; as found when that is good
  int numa = -1;          // of those cores, -1 when they span several
  std::string hca;        // nearest adapter; empty: none
};

// `ranks` in order of local rank. `whole_host`: every core of the machine is
// this job's, so a rank may be moved to cores that no rank of the job was
// given; otherwise only among those.
std::vector<Placement> decide_placement(const Machine& machine,
                                        const std::vector<RankAffinity>& ranks,
                                        bool whole_host);

}  // namespace chexnet
