// Batch scripts for Slurm and PBS. The script starts the program,
// which starts its ranks itself; passes USR1 on; and asks for another start
// after exit codes that may pass (core/exit_codes.hpp), at most `max_requeues`
// times and not after RestartLoop::kSamePlace restarts at the same
// checkpoint. A host that fails is requeued by Slurm itself.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/launch/container.hpp"

namespace chexnet {

enum class Scheduler { kSlurm, kPbs };
constexpr auto names_of(Scheduler) {
  using enum Scheduler;
  return std::to_array<NamedChoice<Scheduler>>(
      {{kSlurm, "slurm"}, {kPbs, "pbs"}});
}

// The batch system whose commands PATH leads to; of none Slurm.
Scheduler scheduler_here();

// The launcher of a job's ranks: the program's own mpirun, or a step of Slurm.
enum class JobLauncher { kMpirun, kSrun };
constexpr auto names_of(JobLauncher) {
  using enum JobLauncher;
  return std::to_array<NamedChoice<JobLauncher>>(
      {{kMpirun, "mpirun"}, {kSrun, "srun"}});
}

// One task of an array: a separate run.
struct SweepPoint {
  std::string run_folder;
  std::vector<std::string> assignments;  // key=value
};
// The product of "key=v1,v2" lists and seeds 1..`seeds` (0: the config's own),
// each with a folder below `folder` named after what differs. ConfigError for a
// list without key or value.
std::vector<SweepPoint> sweep_points(const std::vector<std::string>& lists,
                                     int seeds,
                                     const std::filesystem::path& folder);

// Hosts, ranks, GPUs, cores and restarts are no more, by option or site file.
inline constexpr int kMostOfAJob = 100000;

// Settings of a center ($CHEXNET_SITE), which the command line overrides. 0 and
// empty: not set.
struct JobRequest {
  Scheduler scheduler = Scheduler::kSlurm;
  std::string name = "chexnet", account, partition, time = "24:00:00";
  int nodes = 1, ranks_per_node = 0, gpus_per_node = 0, cpus_per_rank = 0,
      max_requeues = 20;
  std::string memory;           // of a host: "64G"
  std::string qos, constraint;  // Slurm
  bool exclusive = false;       // hosts without other jobs
  JobLauncher launcher = JobLauncher::kMpirun;
  std::string srun_mpi = "pmix";  // how srun and the MPI speak to each other
  // Further #SBATCH or #PBS lines, or their options.
  std::vector<std::string> lines;
  // Shell lines before the program: module load …
  std::vector<std::string> setup;
  std::vector<std::string> program = {"chexnet-train"};  // words
  std::vector<std::string> arguments;  // of `train`: config files, --set …
  // Names that the config has in ${…} and the environment of `submit` holds:
  // qsub gives a job no other variables. The script has no values of them.
  std::vector<std::string> variables;
  std::string run_folder;          // of a single run
  std::vector<SweepPoint> points;  // not empty: an array
  int signal_s = 60;  // a system's warning comes so long before the end
  // Of a registry or a .sqsh file (Slurm with Pyxis), or a .sif file
  // (Apptainer); empty: the program as it is installed.
  std::string container;
  std::vector<Mount> mounts;
  std::string working_folder;  // of the container
};

// A time limit in seconds: one meaning for all batch systems. A number alone is
// minutes, as Slurm has it. Nothing for other text, and for no limit (Slurm's
// 0).
std::optional<double> limit_s(const std::string& time);

// The job's name for batch systems: its name in the characters that all of them
// take.
std::string job_name(const JobRequest& request);

// Ranks of the whole job.
int total_ranks(const JobRequest& request);

// Settles request.ranks_per_node, by launch.ranks and launch.ranks_per_node
// where `request` says neither ranks nor GPUs per host. ConfigError where the
// job would have other ranks than the config says, or more than kMostOfAJob.
void agree_on_ranks(const LaunchConfig& launch, JobRequest& request);

// The warning comes no earlier than the program would stop itself
// (`stop_margin_s`), and leaves most of a short job to training.
int signal_lead_s(double job_s, double stop_margin_s);

// A site file (YAML): scheduler, account, partition, time, nodes,
// ranks_per_node, gpus_per_node, cpus_per_rank, mem, qos, constraint,
// exclusive, max_requeues, launcher, program, container, lines, setup, mounts.
// ConfigError with file and line.
void read_site_file(const std::filesystem::path& path, JobRequest& request);

// ConfigError for a value with a line break, which would be a line of the
// script, for an account or the like that is not one plain word, and for what
// the scheduler does not know or cannot start.
std::string job_script(const JobRequest& request);

}  // namespace chexnet
