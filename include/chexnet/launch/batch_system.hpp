// The batch job this process is part of, and how long it may still run.
// Environment and commands are passed in, so that tests can make them up.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/launch/environment.hpp"

namespace chexnet {

struct BatchJob {
  enum class Kind { kNone, kSlurm, kPbs };
  Kind kind = Kind::kNone;
  std::string id;     // as its commands take it: of an array, "123_4" (Slurm),
                      // "123[4].server" (PBS)
  int nodes = 1;      // of the job
  int tasks = 0;      // ranks the user asked for; 0 = not said
  int host_cpus = 0;  // of this host that are the job's; 0 = not said
  int host_gpus = 0;  // the same of GPUs
  int restarts = 0;   // how often the batch system started it again
  std::string nodefile;  // PBS: hosts, a line for each rank
};
BatchJob batch_job(const Environment& env);

// Runs a command and returns what it prints; empty when it fails.
using Ask = std::function<std::string(const std::vector<std::string>&)>;

// Seconds until the batch system ends the job: squeue's time left on Slurm; on
// PBS the limit less the time used of qstat -f, or PBS_WALLTIME less
// `job_age_s`. Nothing when there is no limit or it is not known.
std::optional<double> job_seconds_left(const BatchJob& job,
                                       const Environment& env, const Ask& ask,
                                       double job_age_s);
// The same with this process's environment and real commands (given five
// seconds); a job's age is its node file's.
std::optional<double> job_seconds_left(const BatchJob& job);

// "90", "1:30", "2:00:00", "1-00:00:00" (days) in seconds, as Slurm and PBS
// write times; two parts are minutes and seconds. Nothing for other text
// ("UNLIMITED").
std::optional<double> duration_s(const std::string& text);

}  // namespace chexnet
