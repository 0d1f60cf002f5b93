// Every rank on its cores: gathers what each finds, checks it per host, and
// moves ranks where the config says so.
#pragma once

#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

// One line of the table of ranks.
struct PlacementRow {
  int rank = 0;
  std::string host, cores, numa, gpu, hca, binding;
  bool good = true;
};

// "rank 3 on node2 (GPU 1)": for messages.
std::string named(const PlacementRow& row);

struct RankPlacement {
  std::vector<int> cpus;  // of this rank, as the kernel says at the end
  // Physical ones among them, divided by the ranks that share them.
  int cores = 1;
  std::vector<PlacementRow> table;    // of all ranks, on every rank
  std::vector<std::string> warnings;  // about this rank
};

struct RankGpu {
  std::string uuid, name;  // empty: computes on the CPU
};

// `started_by_launcher`: mpirun or srun chose the cores,
// not the user. Collective.
RankPlacement place_ranks(Communicator& comm, BindPolicy bind,
                          const RankGpu& gpu, bool started_by_launcher);

// Lines for a terminal.
std::string placement_table(const std::vector<PlacementRow>& rows);

}  // namespace chexnet
