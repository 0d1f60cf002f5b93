#include "chexnet/launch/environment.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace chexnet {
namespace {

int number(const char* text) { return text == nullptr ? 0 : std::atoi(text); }

}  // namespace

bool started_as_rank(const Environment& env) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"})
    if (env(name) != nullptr) return true;
  return false;
}

std::string singleton_problem(const Environment& env, int world_size) {
  if (world_size > 1) return {};
  const auto several = [&](const char* name) { return number(env(name)) > 1; };
  if (several("OMPI_COMM_WORLD_SIZE") || several("PMI_SIZE"))
    return "[launch] the launcher started several processes but MPI sees only one: mpirun and the "
           "MPI library are of different installations. Hint: use the mpirun of the Open MPI this "
           "program was built with (`ldd libchexnet_mpi.so | grep libmpi`)";
  // SLURM_STEP_NUM_TASKS belongs to an srun step; a batch script has SLURM_NTASKS alone, which is
  // no problem.
  if (several("SLURM_STEP_NUM_TASKS") && env("OMPI_COMM_WORLD_RANK") == nullptr)
    return "[launch] srun started " + std::string(env("SLURM_STEP_NUM_TASKS")) +
           " processes that do not know each other. Hint: srun --mpi=pmix, or mpirun inside the "
           "batch script";
  if (env("TORCHELASTIC_RUN_ID") != nullptr ||
      (several("WORLD_SIZE") && env("LOCAL_RANK") != nullptr))
    return "[launch] started by torchrun or a script that sets WORLD_SIZE: each process would "
           "train "
           "alone. Hint: run `chexnet-train train ... --ranks N` without torchrun";
  return {};
}

std::vector<int> allowed_cpus() {
  // hwloc also knows cpusets of containers and batch systems.
  hwloc_topology_t topology = nullptr;
  hwloc_topology_init(&topology);
  hwloc_topology_load(topology);
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  std::vector<int> cpus;
  if (hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) != 0 || hwloc_bitmap_iszero(set))
    hwloc_bitmap_copy(set, hwloc_topology_get_allowed_cpuset(topology));
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu))
    cpus.push_back(cpu);
  hwloc_bitmap_free(set);
  hwloc_topology_destroy(topology);
  return cpus;
}

int threads_for(std::size_t cpus, int sharers) {
  return std::max(1, static_cast<int>(cpus) / std::max(1, sharers));
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]) +
            (last > i ? "-" + std::to_string(cpus[last]) : "");
    i = last + 1;
  }
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace chexnet
