#include "chexnet/launch/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

int number(const char* text) { return text == nullptr ? 0 : std::atoi(text); }

}  // namespace

Environment process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

std::string variable(const Environment& env, const char* name) {
  const char* value = env(name);
  return value == nullptr ? "" : value;
}

bool started_as_rank(const Environment& env) {
  for (const char* name :
       {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PALS_RANKID"})
    if (env(name) != nullptr) return true;
  return false;
}

int launched_processes(const Environment& env) {
  const int by_mpi = std::max(
      {1, number(env("OMPI_COMM_WORLD_SIZE")), number(env("PMI_SIZE"))});
  // Where mpirun is inside srun's step, the step has a task for each daemon.
  const bool by_mpirun = env("OMPI_COMM_WORLD_RANK") != nullptr;
  return by_mpirun ? by_mpi
                   : std::max(by_mpi, number(env("SLURM_STEP_NUM_TASKS")));
}

int restarts_by_parent(const Environment& env) {
  return number(env(kRestartsVariable));
}

std::string singleton_problem(const Environment& env, int world_size) {
  if (world_size > 1) return {};
  const auto several = [&](const char* name) { return number(env(name)) > 1; };
  if (several("OMPI_COMM_WORLD_SIZE") || several("PMI_SIZE"))
    return "[launch] the launcher started several processes but MPI sees only "
           "one: mpirun and the "
           "MPI library are of different installations. Hint: PATH and "
           "LD_LIBRARY_PATH must name the same one (`doctor` shows both)";
  // SLURM_STEP_NUM_TASKS belongs to an srun step; a batch script has
  // SLURM_NTASKS alone, which is no problem.
  if (several("SLURM_STEP_NUM_TASKS") && env("OMPI_COMM_WORLD_RANK") == nullptr)
    return "[launch] srun started " + std::string(env("SLURM_STEP_NUM_TASKS")) +
           " processes that do not know each other. Hint: srun --mpi=pmix "
           "(MPICH: --mpi=pmi2), or mpirun inside the batch script";
  if (env("TORCHELASTIC_RUN_ID") != nullptr ||
      (several("WORLD_SIZE") && env("LOCAL_RANK") != nullptr))
    return "[launch] started by torchrun or a script that sets WORLD_SIZE: "
           "each process would "
           "train "
           "alone. Hint: run `chexnet-train train ... --ranks N` without "
           "torchrun";
  return {};
}

std::string idle_gpus_problem(const Environment& env, int gpus,
                              int local_size) {
  // Somebody chose the number of mpirun's ranks; here it comes from a habit of
  // torchrun's.
  const bool by_srun = env("SLURM_STEP_NUM_TASKS") != nullptr &&
                       env("OMPI_COMM_WORLD_RANK") == nullptr;
  if (!by_srun || gpus <= local_size) return {};
  return formatted(
      "[launch] srun started {} rank(s) on {}, which shows {} GPUs: each rank "
      "uses one, the others would be idle. Hint: srun --ntasks-per-node={} "
      "--mpi=pmix …, or `chexnet-train train …` alone in the batch script; "
      "launch.ranks_per_node={} confirms that this is intended",
      local_size, host_name(), gpus, gpus, local_size);
}

std::string narrow_step_problem(const Environment& env, size_t cpus) {
  const int wanted = number(env("SLURM_CPUS_PER_TASK"));
  if (env("SLURM_STEP_NUM_TASKS") == nullptr ||
      env("OMPI_COMM_WORLD_RANK") != nullptr ||
      static_cast<int>(cpus) >= wanted)
    return {};
  return formatted(
      "[launch] {}: srun gave this rank {} of the {} CPUs that the job asked "
      "for a task. Hint: from Slurm 22.05 on a step does not inherit -c: srun "
      "-c {} …",
      host_name(), cpus, wanted, wanted);
}

std::vector<std::string> command_words(const Environment& env,
                                       const std::string& path) {
  namespace fs = std::filesystem;
  const char* script = env("CHEXNET_PROGRAM");
  const char* torch = env("CHEXNET_TORCH");
  // Not the script of another bundle, which started our parent.
  if (script == nullptr || fs::path(path).parent_path().parent_path() !=
                               fs::path(script).parent_path())
    return {path};
  if (torch == nullptr || *torch == 0) return {script};
  return {script, "--torch", torch};
}

int threads_for(size_t cpus, int sharers) {
  return std::max(1, static_cast<int>(cpus) / std::max(1, sharers));
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace chexnet
