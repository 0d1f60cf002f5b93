// Two exchanges. In the first, ranks tell where they may run; each then decides
// for all ranks of its host and takes its own row of the result, so neighbors
// do not pick the same cores. In the second they tell where they are now, for
// the table and for the number of threads: whole cores, not hardware threads,
// divided among the ranks that are bound to the same ones.
#include "chexnet/comm/placement.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/table.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/machine/affinity.hpp"
#include "chexnet/machine/binding.hpp"

namespace chexnet {
namespace {

using nlohmann::json;

// Processes on this rank's GPU that are no ranks of ours on this host.
std::vector<std::string> strangers(std::vector<GpuState> gpus,
                                   const std::string& uuid,
                                   const std::vector<unsigned>& ours) {
  keep_strangers(gpus, ours);
  std::vector<std::string> found;
  for (const auto& gpu : gpus) {
    if (!gpu.has_id(uuid)) continue;
    for (const auto& process : gpu.processes)
      found.push_back("process " + std::to_string(process.pid) +
                      " also uses GPU " + gpu.uuid + " on " + host_name() +
                      (process.bytes < 0
                           ? ""
                           : " (" + readable_bytes(process.bytes) + ")") +
                      ": it takes time and memory from this run");
  }
  return found;
}

}  // namespace

RankPlacement place_ranks(Communicator& comm, BindPolicy bind,
                          const RankGpu& gpu, bool started_by_launcher) {
  const auto nvml = gpu.uuid.empty() ? nullptr : Nvml::open();
  const auto gpus = nvml ? nvml->gpus() : std::vector<GpuState>{};
  const Machine machine = read_machine(gpus);

  const std::string host = host_name();
  const auto everyone =
      gather_json(comm, json{{"host", host},
                             {"cpus", allowed_cpus()},
                             {"gpu", gpu.uuid},
                             {"pid", static_cast<unsigned>(getpid())}});
  std::vector<RankAffinity> neighbors;
  std::vector<unsigned> pids;
  size_t me = 0;
  for (size_t r = 0; r < everyone.size(); ++r) {
    if (everyone[r]["host"] != host) continue;
    if (static_cast<int>(r) == comm.rank()) me = neighbors.size();
    neighbors.push_back(
        {everyone[r]["cpus"].get<std::vector<int>>(), everyone[r]["gpu"]});
    pids.push_back(everyone[r]["pid"].get<unsigned>());
  }
  const BatchJob job = batch_job(process_environment());
  const bool whole_host =
      started_by_launcher &&
      (job.kind == BatchJob::Kind::kNone ||
       job.host_cpus >= static_cast<int>(machine.cpus.size()));
  const Placement wanted = decide_placement(machine, neighbors, whole_host)[me];

  RankPlacement placed;
  placed.cpus = neighbors[me].cpus;
  std::string binding = "good";
  if (bind == BindPolicy::kOff) {
    binding = "not checked";
  } else if (wanted.found != Binding::kGood) {
    binding = wanted.reason;
    if (bind == BindPolicy::kFix) {
      placed.cpus = bind_process(wanted.cpus);
      binding += placed.cpus == wanted.cpus
                     ? ": moved to " + cpu_list_text(wanted.cpus)
                     : ": could not be moved to " + cpu_list_text(wanted.cpus);
    }
    if (placed.cpus != wanted.cpus)
      placed.warnings.push_back(
          "[binding] " + host + ": " + binding + ". Hint: " +
          (bind == BindPolicy::kFix ? "the batch system holds this rank there"
                                    : "launch.bind=fix moves it"));
  }
  std::set<std::pair<int, int>> cores;
  for (const auto& cpu : machine.cpus)
    if (std::ranges::binary_search(placed.cpus, cpu.id))
      cores.insert({cpu.package, cpu.core});
  const auto after = gather_json(comm, json{{"cpus", placed.cpus},
                                            {"numa", wanted.numa},
                                            {"gpu", gpu.name},
                                            {"hca", wanted.hca},
                                            {"binding", binding},
                                            {"good", placed.warnings.empty()}});
  int sharers = 0;
  for (size_t r = 0; r < after.size(); ++r) {
    if (everyone[r]["host"] == host &&
        after[r]["cpus"] == after[static_cast<size_t>(comm.rank())]["cpus"])
      ++sharers;
    const int numa = after[r]["numa"];
    placed.table.push_back(
        {static_cast<int>(r), everyone[r]["host"],
         cpu_list_text(after[r]["cpus"].get<std::vector<int>>()),
         numa < 0 ? "-" : std::to_string(numa), after[r]["gpu"],
         after[r]["hca"], after[r]["binding"], after[r]["good"]});
  }
  placed.cores =
      threads_for(cores.empty() ? placed.cpus.size() : cores.size(), sharers);
  for (auto& text : strangers(gpus, gpu.uuid, pids))
    placed.warnings.push_back("[gpu] " + text);
  return placed;
}

std::string named(const PlacementRow& row) {
  return "rank " + std::to_string(row.rank) + " on " + row.host +
         (row.gpu.empty() ? "" : " (" + row.gpu + ")");
}

std::string placement_table(const std::vector<PlacementRow>& rows) {
  std::vector<std::vector<std::string>> lines = {
      {"rank", "host", "cores", "NUMA node", "GPU", "HCA", "binding"}};
  for (const auto& row : rows)
    lines.push_back({std::to_string(row.rank), row.host, row.cores, row.numa,
                     row.gpu.empty() ? "-" : row.gpu,
                     row.hca.empty() ? "-" : row.hca, row.binding});
  return columns(lines);
}

}  // namespace chexnet
