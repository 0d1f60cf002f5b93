// Host files: which hosts a run may use, and how many ranks each takes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace chexnet {

struct HostSlots {
  std::string name;
  int slots = 0;
};

// Of all hosts together, so that sums stay within an int.
inline constexpr int kMostSlots = 1 << 20;

// Hosts in order of first mention; one that is named again gets the slots
// added.
class HostTally {
 public:
  // What is wrong, or empty: names hold letters, digits, '.', '-' and '_'.
  std::string add(const std::string& name, int slots);
  std::vector<HostSlots> take() { return std::move(hosts_); }

 private:
  std::vector<HostSlots> hosts_;
  std::unordered_map<std::string, size_t> place_of_;  // in hosts_
  int slots_ = 0;                                     // of all
};

// Open MPI's form ("node1 slots=2 max_slots=4"), MPICH's ("node1:2"), and PBS's
// node file (a line for each rank); # begins a comment. A host named again gets
// the slots added. In order of first mention. ConfigError with file and line,
// and with the `variable` that names the file, where one does.
std::vector<HostSlots> read_hostfile(const std::filesystem::path& path,
                                     const std::string& variable = "");
// The text of a file of hosts, of at most 64 MiB. ConfigError where it is
// absent, larger, or a pipe, device or folder; OutageError.
std::string hostfile_content(const std::filesystem::path& path,
                             const std::string& variable);
// "LSB_DJOB_HOSTFILE=/path", or the path alone.
std::string hostfile_name(const std::filesystem::path& path,
                          const std::string& variable);

// "node1:4,node2:4" for mpirun, of at least one host. Slots that a batch system
// did not count, or too few for `ranks_per_host` (0: as the slots say), are as
// many as the ranks of a host.
std::string host_list(const std::vector<HostSlots>& hosts, int ranks,
                      int ranks_per_host);

// Whether `name` in a host file means this machine: its name (with or without
// the domain), "localhost", or a name or number of one of its addresses.
bool is_this_host(const std::string& name);

}  // namespace chexnet
