// Which batch job this is, by what its system puts into the environment:
//
//   Slurm        SLURM_JOB_ID, SLURM_NTASKS, …
//   PBS          PBS_JOBID, PBS_NODEFILE
//   LSF          LSB_JOBID, LSB_JOBINDEX; hosts in LSB_DJOB_HOSTFILE (a line
//                for each slot), LSB_MCPU_HOSTS ("host 4 host 4") or LSB_HOSTS
//                (IBM Spectrum LSF 10.1, environment variables set for job
//                execution)
//   Grid Engine  JOB_ID with SGE_TASK_ID or PE_HOSTFILE, NSLOTS; hosts in
//                PE_HOSTFILE ("host slots queue processors", sge_pe(5))
//   Flux         FLUX_URI, FLUX_ENCLOSING_ID, FLUX_JOB_ID
//                (flux-environment(7)); hosts by `flux hostlist`
#include "chexnet/launch/batch_system.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "chexnet/core/parsed_number.hpp"

namespace chexnet {
namespace {

// The first number in a value like "4", "2(x3)" or "gpu:4"; 0 where there is
// none that an int holds.
int number(const Environment& env, const char* name) {
  constexpr std::string_view kDigits = "0123456789";
  std::string value = variable(env, name);
  value.erase(0, value.find_first_of(kDigits));
  value.erase(std::min(value.size(), value.find_first_not_of(kDigits)));
  return parsed_number<int>(value).value_or(0);
}

bool exists(const std::string& path) {
  std::error_code error;
  return !path.empty() && std::filesystem::exists(path, error);
}

BatchJob slurm_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kSlurm;
  job.id = variable(env, "SLURM_JOB_ID");
  if (env("SLURM_ARRAY_JOB_ID") != nullptr &&
      env("SLURM_ARRAY_TASK_ID") != nullptr)
    job.id = variable(env, "SLURM_ARRAY_JOB_ID") + "_" +
             variable(env, "SLURM_ARRAY_TASK_ID");
  job.host_cpus = number(env, "SLURM_CPUS_ON_NODE");
  job.host_gpus = number(env, "SLURM_GPUS_ON_NODE");
  job.restarts = number(env, "SLURM_RESTART_COUNT");
  return job;
}

BatchJob pbs_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kPbs;
  job.id = variable(env, "PBS_JOBID");
  job.nodefile = job.start_file = variable(env, "PBS_NODEFILE");
  job.host_cpus = number(env, "NCPUS");
  job.restarts = number(env, "CHEXNET_SUBMISSION");
  return job;
}

BatchJob lsf_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kLsf;
  job.id = variable(env, "LSB_JOBID");
  if (const int index = number(env, "LSB_JOBINDEX"); index > 0)
    job.id += "[" + std::to_string(index) + "]";
  return job;
}

BatchJob grid_engine_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kGridEngine;
  job.id = variable(env, "JOB_ID");
  job.restarts = number(env, "RESTARTED");  // 1 after any number of starts
  // The job's folder is made when it begins; a file in it stays untouched.
  job.start_file = variable(env, "PE_HOSTFILE");
  if (!exists(job.start_file) && env("SGE_JOB_SPOOL_DIR") != nullptr)
    job.start_file = variable(env, "SGE_JOB_SPOOL_DIR") + "/environment";
  return job;
}

// Other programs have a JOB_ID, too.
bool is_grid_engine(const Environment& env) {
  const bool by_task = env("SGE_TASK_ID") != nullptr;
  const bool by_hosts = env("PE_HOSTFILE") != nullptr;
  return env("JOB_ID") != nullptr && (by_task || by_hosts);
}

// A batch script is the first program of an instance of Flux, and knows it by
// its address. `flux proxy` sets this too, on hosts that are not the job's.
BatchJob flux_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kFlux;
  job.id =
      variable(env, env("FLUX_ENCLOSING_ID") != nullptr ? "FLUX_ENCLOSING_ID"
                                                        : "FLUX_JOB_ID");
  job.restarts = number(env, "CHEXNET_SUBMISSION");
  return job;
}

}  // namespace

// Flux first: an instance within a job of another system leaves that system's
// variables as they are, but for Slurm's.
BatchJob batch_job(const Environment& env) {
  if (env("FLUX_URI") != nullptr && env("FLUX_PROXY_REMOTE") == nullptr)
    return flux_job(env);
  if (env("SLURM_JOB_ID") != nullptr) return slurm_job(env);
  if (env("PBS_JOBID") != nullptr) return pbs_job(env);
  if (env("LSB_JOBID") != nullptr) return lsf_job(env);
  if (is_grid_engine(env)) return grid_engine_job(env);
  return {};
}

}  // namespace chexnet
