// The batch job this process is part of, and how long it may still run.
// Environment and commands are passed in, so that tests can replace them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/hosts.hpp"

namespace chexnet {

struct BatchJob {
  enum class Kind { kNone, kSlurm, kPbs, kLsf, kGridEngine, kFlux };
  Kind kind = Kind::kNone;
  // As its commands take it: of an array, "123_4" (Slurm), "123[4].server"
  // (PBS), "123[4]" (LSF).
  std::string id;
  int host_cpus = 0;       // of this host that are the job's; 0 = not said
  int host_gpus = 0;       // the same of GPUs
  int restarts = 0;        // how often the batch system started it again
  std::string nodefile;    // PBS: hosts, a line for each rank
  std::string start_file;  // written when the job began; empty: none known

  // Of job_with_hosts() and job_for_mpirun() alone:
  int nodes = 1;  // of the job
  int tasks = 0;  // ranks the user asked for; 0 = not said
  // In order, with slots as the job asked for them; 0 = not said (Flux). None:
  // this host, or those that mpirun asks Slurm for.
  std::vector<HostSlots> hosts;
};
// Without its hosts, so that each rank may call it on any host.
BatchJob batch_job(const Environment& env);

// Executes a command and returns its output; empty when it fails.
using Ask = std::function<std::string(const std::vector<std::string>&)>;
// Real commands, given five seconds.
inline constexpr int kAskTimeout_s = 5;
std::string ask_command(const std::vector<std::string>& command);

// batch_job() and its hosts, on the host where the job began. ConfigError where
// a variable, file or command that names hosts or slots makes no sense.
BatchJob job_with_hosts(const Environment& env, const Ask& ask);
// The same, with the hosts of `hostfile` where that is not empty. The batch
// system's are not looked at then.
BatchJob job_for_mpirun(const std::string& hostfile, const Environment& env,
                        const Ask& ask);

// Seconds until the batch system ends the job. Slurm: squeue's time left. PBS:
// the limit less the time used of qstat -f, or PBS_WALLTIME less `job_age_s`.
// LSF: bjobs. Grid Engine: h_rt of qstat -j less `job_age_s`. Flux: flux job
// timeleft. Nothing when there is no limit or it is not known.
std::optional<double> job_seconds_left(const BatchJob& job,
                                       const Environment& env, const Ask& ask,
                                       double job_age_s);
// The same with this process's environment and real commands; a job's age is
// its start file's.
std::optional<double> job_seconds_left(const BatchJob& job);

// Its hosts, and where mpirun asks Slurm those that Slurm names, with 0 slots:
// all hosts that a run may use, as they are known now.
std::vector<HostSlots> hosts_of_run(const std::string& hostfile,
                                    const Environment& env, const Ask& ask);

// "90", "1:30", "2:00:00", "1-00:00:00" (days) in seconds, as Slurm, PBS and
// Grid Engine write times; two parts are minutes and seconds. Nothing for other
// text ("UNLIMITED", 61 seconds of a minute) and more than 31 years.
std::optional<double> duration_s(const std::string& text);

}  // namespace chexnet
