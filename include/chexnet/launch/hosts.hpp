// Host files: which hosts a run may use, and how many ranks each takes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace chexnet {

struct HostSlots {
  std::string name;
  int slots = 0;
};
// Open MPI's form ("node1 slots=2 max_slots=4"), MPICH's ("node1:2"), and PBS's
// node file (a line for each rank); # begins a comment. A host named again gets
// the slots added. IPv6 addresses stand without brackets, and take slots in
// Open MPI's form alone. In order of first mention. ConfigError with file and
// line.
std::vector<HostSlots> read_hostfile(const std::filesystem::path& path);

// "node1:4,node2:4" for mpirun, of at least one host. Slots that a batch system
// did not count, or too few for `ranks_per_host` (0: as the slots say), are as
// many as the ranks of a host.
std::string host_list(const std::vector<HostSlots>& hosts, int ranks,
                      int ranks_per_host);

// Whether `name` in a host file means this machine: its own name (with or
// without the domain), "localhost", or a name or number of one of its
// addresses.
bool is_this_host(const std::string& name);

}  // namespace chexnet
