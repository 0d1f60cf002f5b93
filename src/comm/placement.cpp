// Two exchanges. In the first, ranks tell which cores they may use; each then
// decides for all ranks of its host and takes its own row of the result, so
// neighbors do not pick the same cores. In the second they tell where they are
// now, for the table and for the number of threads: whole cores, not hardware
// threads, divided among the ranks that are bound to the same ones. They show
// also where the ranks of a host reach fewer CPUs than the job has there.
#include "chexnet/comm/placement.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launchers.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/launch/machine/binding.hpp"

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

// A job's CPUs on any of its hosts, of "40(x3),20"; 0 where that is not known.
int fewest_cpus(const std::string& per_node) {
  int fewest = 0;
  std::istringstream groups(per_node);
  for (std::string group; std::getline(groups, group, ',');) {
    const int cpus =
        parsed_number<int>(group.substr(0, group.find('('))).value_or(0);
    fewest = fewest == 0 ? cpus : std::min(fewest, cpus);
  }
  return fewest;
}

// The CPUs that the job has here at least; 0 where that is not known, or where
// srun gave them to ranks (narrow_step_problem). Under mpirun's daemon
// SLURM_CPUS_ON_NODE says what the daemon's step has.
int cpus_of_job(const Environment& env, const BatchJob& job) {
  const bool by_srun = env("SLURM_STEP_NUM_TASKS") != nullptr &&
                       env("OMPI_COMM_WORLD_RANK") == nullptr;
  if (by_srun) return 0;
  return std::max(job.host_cpus,
                  fewest_cpus(variable(env, "SLURM_JOB_CPUS_PER_NODE")));
}

std::set<std::pair<int, int>> cores_of(const Machine& machine,
                                       const std::vector<int>& cpus) {
  std::set<std::pair<int, int>> cores;
  for (const auto& cpu : machine.cpus)
    if (std::ranges::binary_search(cpus, cpu.id))
      cores.insert({cpu.package, cpu.core});
  return cores;
}

// All hardware threads of the cores of `cpus`.
std::vector<int> whole_cores(const Machine& machine,
                             const std::vector<int>& cpus) {
  const auto cores = cores_of(machine, cpus);
  std::vector<int> all;
  for (const auto& cpu : machine.cpus)
    if (cores.contains({cpu.package, cpu.core})) all.push_back(cpu.id);
  return all;
}

// Hosts whose ranks reach fewer CPUs than the job has there, with a sentence
// for each. CPUs that ranks left for those near their GPUs count as reached.
std::map<std::string, std::string> lost_cpus(const std::vector<json>& before,
                                             const std::vector<json>& after) {
  std::map<std::string, std::set<int>> reached;
  std::map<std::string, int> of_job;
  for (size_t r = 0; r < before.size(); ++r) {
    const std::string host = before[r]["host"];
    of_job[host] = before[r]["of_job"];
    for (const int cpu : before[r]["cpus"]) reached[host].insert(cpu);
    for (const int cpu : after[r]["reached"]) reached[host].insert(cpu);
  }
  std::map<std::string, std::string> lost;
  for (const auto& [host, cpus] : reached)
    if (static_cast<int>(cpus.size()) < of_job[host])
      lost[host] = std::to_string(cpus.size()) + " of the " +
                   std::to_string(of_job[host]) + " CPUs that the job has here";
  return lost;
}

std::vector<PlacementRow> rows_of(
    const std::vector<json>& before, const std::vector<json>& after,
    const std::map<std::string, std::string>& lost) {
  std::vector<PlacementRow> rows;
  for (size_t r = 0; r < after.size(); ++r) {
    const int numa = after[r]["numa"];
    PlacementRow& row = rows.emplace_back(
        PlacementRow{static_cast<int>(r), before[r]["host"],
                     cpu_list_text(after[r]["cpus"].get<std::vector<int>>()),
                     numa < 0 ? "-" : std::to_string(numa), after[r]["gpu"],
                     after[r]["hca"], after[r]["binding"], after[r]["good"]});
    const auto few = lost.find(row.host);
    if (few == lost.end()) continue;
    if (row.good) row.binding = few->second;
    row.good = false;
  }
  return rows;
}

// Of a rank on `cpus`, which are as they should be.
std::string good_or_crowded(const Machine& machine,
                            const std::vector<RankAffinity>& neighbors,
                            const std::vector<int>& cpus) {
  const auto cores = static_cast<int64_t>(cores_of(machine, cpus).size());
  const auto alike = std::ranges::count(neighbors, cpus, &RankAffinity::cpus);
  if (cores == 0 || alike <= cores) return "good";
  return formatted("{} ranks share {} cores", alike, cores);
}

std::string lost_cpus_hint(const Environment& env) {
  for (const char* name : kStepVariables)
    if (env(name) != nullptr)
      return "unset " + std::string(name) +
             " before mpirun, whose own srun obeys it";
  return "mpirun --bind-to none; the ranks then share out the cores";
}

}  // namespace

RankPlacement place_ranks(Communicator& comm, BindPolicy bind,
                          const RankGpu& gpu, bool started_by_launcher) {
  const auto nvml = gpu.uuid.empty() ? nullptr : Nvml::open();
  const auto gpus = nvml ? nvml->gpus() : std::vector<GpuState>{};
  const Machine machine = read_machine(gpus);

  const std::string host = host_name();
  const Environment env = process_environment();
  const BatchJob job = batch_job(env);
  const int of_job = started_by_launcher && bind != BindPolicy::kOff
                         ? std::min(cpus_of_job(env, job),
                                    static_cast<int>(machine.cpus.size()))
                         : 0;
  const auto everyone =
      gather_json(comm, json{{"host", host},
                             {"cpus", allowed_cpus()},
                             {"gpu", gpu.uuid},
                             {"of_job", of_job},
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
  const bool whole_host =
      started_by_launcher &&
      (job.kind == BatchJob::Kind::kNone ||
       job.host_cpus >= static_cast<int>(machine.cpus.size()));
  const Placement wanted = decide_placement(machine, neighbors, whole_host)[me];

  RankPlacement placed;
  placed.cpus = neighbors[me].cpus;
  std::string binding = good_or_crowded(machine, neighbors, placed.cpus);
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
  const auto after =
      gather_json(comm, json{{"cpus", placed.cpus},
                             {"reached", whole_cores(machine, placed.cpus)},
                             {"numa", wanted.numa},
                             {"gpu", gpu.name},
                             {"hca", wanted.hca},
                             {"binding", binding},
                             {"good", placed.warnings.empty()}});
  const auto lost = lost_cpus(everyone, after);
  if (me == 0 && lost.contains(host))
    placed.warnings.push_back("[binding] " + host + ": the ranks run on " +
                              lost.at(host) + ". Hint: " + lost_cpus_hint(env));

  placed.table = rows_of(everyone, after, lost);
  const auto sharers =
      std::ranges::count_if(placed.table, [&](const auto& row) {
        return row.host == host && row.cores == cpu_list_text(placed.cpus);
      });
  const auto cores = cores_of(machine, placed.cpus);
  placed.cores = threads_for(cores.empty() ? placed.cpus.size() : cores.size(),
                             static_cast<int>(sharers));
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
