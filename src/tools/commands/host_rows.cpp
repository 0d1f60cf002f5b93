#include "host_rows.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/comm/gather_json.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/launch/machine/core_check.hpp"
#include "chexnet/launch/machine/host_checks.hpp"
#include "chexnet/launch/machine/topology.hpp"
#include "health_table.hpp"

namespace chexnet {
namespace {

// What the ranks of this host say of themselves.
struct RanksHere {
  std::vector<unsigned> pids;
  std::vector<RankCores> cores;
};

// The physical cores that this process may use.
std::vector<int> own_cores() {
  const auto allowed = allowed_cpus();
  std::set<int> cores;  // by their first hardware thread
  std::map<std::pair<int, int>, int> first;
  for (const auto& cpu : read_machine({}).cpus) {
    const auto [core, added] = first.insert({{cpu.package, cpu.core}, cpu.id});
    if (std::ranges::binary_search(allowed, cpu.id)) cores.insert(core->second);
  }
  return {cores.begin(), cores.end()};
}

// Collective.
RanksHere ranks_here(Communicator& comm, const Device& device) {
  const Json mine = {{"host", host_name()},
                     {"pid", static_cast<unsigned>(getpid())},
                     {"cores", own_cores()},
                     {"threads", device.threads}};
  RanksHere here;
  int number = 0;
  for (const auto& rank : gather_json(comm, mine)) {
    const int own = number++;
    if (rank["host"] != host_name()) continue;
    here.pids.push_back(rank["pid"]);
    here.cores.push_back(
        {own, rank["cores"].get<std::vector<int>>(), rank["threads"]});
  }
  return here;
}

}  // namespace

HostChecks of_hosts(const std::string& folder, Communicator& comm,
                    const Device& device, const GpuProblem& gpu_problem) {
  const World& world = comm.world();
  const bool on_gpus = device.cuda != nullptr;
  const RanksHere ranks = ranks_here(comm, device);
  Json mine;
  if (world.local_rank == 0) {
    const StorageWait wait(timeout_of_start({}),
                           "looking at this host and its folder " + folder);
    const int visible = CudaLibrary::visible_gpus();
    auto checks = check_host(
        {.folder = folder,
         .ranks_here = world.local_size,
         .visible_gpus = visible,
         .build = CudaLibrary::build(),
         .gpu_problem = gpu_problem,
         .problem_elsewhere =
             visible == 0 ? CudaLibrary::problem_elsewhere() : GpuProblem{},
         .pins_memory = on_gpus,
         .pids_on_gpus = on_gpus ? ranks.pids : std::vector<unsigned>{}});
    checks.insert(checks.begin(), check_cores(ranks.cores));
    mine = {{"host", host_name()}, {"checks", json_of(checks)}};
  }
  HostChecks hosts;
  for (const auto& said : gather_json(comm, mine)) {
    if (said.is_null()) continue;
    hosts.names.insert(said["host"]);
    for (auto& check : checks_of(said["checks"])) {
      const bool several = comm.size() > world.local_size;
      if (several)
        check.name = said["host"].get<std::string>() + ": " + check.name;
      hosts.checks.push_back(std::move(check));
    }
  }
  return hosts;
}

}  // namespace chexnet
