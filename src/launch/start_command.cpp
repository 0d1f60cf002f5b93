// mpirun's command line, for Open MPI 4 and 5 and for Hydra, the mpirun of
// MPICH (and of Intel MPI):
//
//                         Open MPI                       Hydra
//   hosts                 --host node1:2,node2:2         -hosts node1:2,node2:2
//   ranks on a host       --map-by ppr:2:node            the 2 above; -ppn 2
//   binding, one host     --map-by socket                -bind-to none
//   binding, more         --bind-to none                 -bind-to none
//   environment           -x NAME                        all of it, by itself
//   more ranks than cores --oversubscribe                allowed
//   root                  --allow-run-as-root            allowed
//
// Each rank finds its own placement (launch.bind).
#include <algorithm>

#include "chexnet/launch/self_launch.hpp"

namespace chexnet {
namespace {

using Words = std::vector<std::string>;

void append(Words& command, const Words& words) {
  command.insert(command.end(), words.begin(), words.end());
}

void add_open_mpi_options(const SelfLaunch& launch, Words& command) {
  const RankLayout& layout = launch.layout;
  if (layout.hosts == 1 && launch.hosts.empty()) {
    // Its banners about ranks that ended would come after what the program
    // said. (Open MPI 5 knows no -q, takes this, and says them all the same.)
    // Between hosts they alone may name the lost one, and the parent speaks
    // last.
    append(command, {"--mca", "orte_execute_quiet", "1"});
    append(command, {"--map-by", "socket"});
  } else {
    // The list, as Open MPI reads host files otherwise than hosts.hpp:
    // `node1:2` not at all, and of a line without slots, as PBS has them, it
    // takes as many as it has cores.
    if (!launch.hosts.empty())
      append(command, {"--host", host_list(launch.hosts, layout.ranks,
                                           layout.ranks_per_host)});
    // Two ranks would be bound to a core each.
    append(command, {"--bind-to", "none"});
    if (layout.ranks_per_host > 0)
      append(command,
             {"--map-by",
              "ppr:" + std::to_string(layout.ranks_per_host) + ":node"});
    for (const auto& name : launch.forwarded) append(command, {"-x", name});
  }
  if (launch.oversubscribe) command.emplace_back("--oversubscribe");
  append(command, {"-np", std::to_string(layout.ranks)});
  if (launch.as_root) command.emplace_back("--allow-run-as-root");
}

// "node1:2,node2:2" for the ranks of `launch`, in the order of its hosts.
std::string hydra_hosts(const SelfLaunch& launch) {
  const auto count = static_cast<int>(launch.hosts.size());
  const int equal_share = (launch.layout.ranks + count - 1) / count;
  std::string text;
  int left = launch.layout.ranks;
  for (const auto& host : launch.hosts) {
    if (left <= 0) break;
    int slots = host.slots > 0 ? host.slots : equal_share;
    if (launch.layout.ranks_per_host > 0) slots = launch.layout.ranks_per_host;
    text += (text.empty() ? "" : ",") + host.name + ":" +
            std::to_string(std::min(slots, left));
    left -= slots;
  }
  return text;
}

void add_hydra_options(const SelfLaunch& launch, Words& command) {
  const RankLayout& layout = launch.layout;
  if (!launch.hosts.empty())
    append(command, {"-hosts", hydra_hosts(launch)});
  else if (layout.hosts > 1 && layout.ranks_per_host > 0)
    append(command, {"-ppn", std::to_string(layout.ranks_per_host)});
  // Intel's calls it otherwise.
  if (!launch.mpirun.is_intel) append(command, {"-bind-to", "none"});
  append(command, {"-np", std::to_string(layout.ranks)});
}

}  // namespace

std::vector<std::string> start_command(const SelfLaunch& launch) {
  Words command;
  if (!launch.alone) {
    command.push_back(launch.mpirun.command);
    if (launch.mpirun.family == MpiFamily::kOpenMpi)
      add_open_mpi_options(launch, command);
    else
      add_hydra_options(launch, command);
    append(command, launch.mpi_args);
  }
  command.push_back(launch.program);
  append(command, launch.arguments);
  return command;
}

}  // namespace chexnet
