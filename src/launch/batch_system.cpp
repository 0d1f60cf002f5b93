// Which batch job this is, by what its system puts into the environment:
//
//   Slurm        SLURM_JOB_ID, SLURM_NTASKS, …
//   PBS          PBS_JOBID, PBS_NODEFILE
//   LSF          LSB_JOBID, LSB_JOBINDEX; hosts in LSB_DJOB_HOSTFILE (a line
//                for each slot), LSB_MCPU_HOSTS ("host 4 host 4") or LSB_HOSTS
//                (IBM Spectrum LSF 10.1, environment variables set for job
//                execution)
//   Grid Engine  JOB_ID, SGE_TASK_ID, NSLOTS; hosts in PE_HOSTFILE ("host
//                slots queue processors", sge_pe(5))
//   Flux         FLUX_URI, FLUX_ENCLOSING_ID, FLUX_JOB_ID
//                (flux-environment(7)); hosts by `flux hostlist`
#include "chexnet/launch/batch_system.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/launch/child_process.hpp"

namespace chexnet {
namespace {

std::string text(const Environment& env, const char* name) {
  const char* value = env(name);
  return value == nullptr ? "" : value;
}
// The first number in a value like "4", "2(x3)" or "gpu:4"; 0 where there is
// none that an int holds.
int number(const Environment& env, const char* name) {
  constexpr std::string_view kDigits = "0123456789";
  std::string value = text(env, name);
  value.erase(0, value.find_first_of(kDigits));
  value.erase(std::min(value.size(), value.find_first_not_of(kDigits)));
  return parsed_number<int>(value).value_or(0);
}

bool exists(const std::string& path) {
  std::error_code error;
  return !path.empty() && std::filesystem::exists(path, error);
}

void add_slots(const std::string& name, int slots,
               std::vector<HostSlots>& hosts) {
  constexpr int kMost = 1 << 20;  // as in a host file
  const auto known = std::ranges::find(hosts, name, &HostSlots::name);
  if (known == hosts.end())
    hosts.push_back({name, std::min(slots, kMost)});
  else
    known->slots = std::min(known->slots + std::min(slots, kMost), kMost);
}

// Of words that alternate: a host, its slots. Empty where they do not.
std::vector<HostSlots> counted_hosts(const std::string& words) {
  std::vector<HostSlots> hosts;
  std::istringstream stream(words);
  for (std::string name, count; stream >> name;) {
    const auto slots =
        stream >> count ? parsed_number<int>(count) : std::nullopt;
    if (!slots || *slots < 1) return {};
    add_slots(name, *slots, hosts);
  }
  return hosts;
}

std::vector<HostSlots> repeated_hosts(const std::string& words) {
  std::vector<HostSlots> hosts;
  std::istringstream stream(words);
  for (std::string name; stream >> name;) add_slots(name, 1, hosts);
  return hosts;
}

std::vector<HostSlots> parallel_environment(const std::string& path) {
  std::ifstream file(path);
  std::string pairs;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, slots;
    if (words >> name >> slots) pairs.append(name + " " + slots + "\n");
  }
  return counted_hosts(pairs);
}

void count_hosts(BatchJob& job) {
  if (job.hosts.empty()) return;
  job.nodes = static_cast<int>(job.hosts.size());
  job.tasks = 0;
  for (const auto& host : job.hosts) job.tasks += host.slots;
}

BatchJob slurm_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kSlurm;
  job.id = text(env, "SLURM_JOB_ID");
  if (env("SLURM_ARRAY_JOB_ID") != nullptr &&
      env("SLURM_ARRAY_TASK_ID") != nullptr)
    job.id = text(env, "SLURM_ARRAY_JOB_ID") + "_" +
             text(env, "SLURM_ARRAY_TASK_ID");
  job.nodes = std::max(1, number(env, "SLURM_JOB_NUM_NODES"));
  job.tasks = number(env, "SLURM_NTASKS");
  job.host_cpus = number(env, "SLURM_CPUS_ON_NODE");
  job.host_gpus = number(env, "SLURM_GPUS_ON_NODE");
  job.restarts = number(env, "SLURM_RESTART_COUNT");
  return job;
}

BatchJob pbs_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kPbs;
  job.id = text(env, "PBS_JOBID");
  job.nodefile = job.start_file = text(env, "PBS_NODEFILE");
  job.host_cpus = number(env, "NCPUS");
  job.restarts = number(env, "CHEXNET_SUBMISSION");
  // PBS keeps the file on the job's first host; the others know of it by name
  // only.
  if (exists(job.nodefile)) {
    const auto hosts = read_hostfile(job.nodefile);
    job.nodes = std::max<int>(1, static_cast<int>(hosts.size()));
    for (const auto& host : hosts) job.tasks += host.slots;
  }
  return job;
}

BatchJob lsf_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kLsf;
  job.id = text(env, "LSB_JOBID");
  if (const int index = number(env, "LSB_JOBINDEX"); index > 0)
    job.id += "[" + std::to_string(index) + "]";
  if (const std::string file = text(env, "LSB_DJOB_HOSTFILE"); exists(file))
    job.hosts = read_hostfile(file);
  if (job.hosts.empty()) job.hosts = counted_hosts(text(env, "LSB_MCPU_HOSTS"));
  if (job.hosts.empty()) job.hosts = repeated_hosts(text(env, "LSB_HOSTS"));
  count_hosts(job);
  return job;
}

BatchJob grid_engine_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kGridEngine;
  job.id = text(env, "JOB_ID");
  job.restarts = number(env, "RESTARTED");  // 1 after any number of starts
  // The job's own folder is made when it begins; a file in it stays untouched.
  job.start_file = text(env, "PE_HOSTFILE");
  job.hosts = parallel_environment(job.start_file);
  if (job.hosts.empty() && env("SGE_JOB_SPOOL_DIR") != nullptr)
    job.start_file = text(env, "SGE_JOB_SPOOL_DIR") + "/environment";
  job.tasks = number(env, "NSLOTS");
  count_hosts(job);
  return job;
}

// A batch script is the first program of an instance of Flux, and knows it by
// its address. `flux proxy` sets this too, on hosts that are not the job's.
BatchJob flux_job(const Environment& env) {
  BatchJob job;
  job.kind = BatchJob::Kind::kFlux;
  job.id = text(env, env("FLUX_ENCLOSING_ID") != nullptr ? "FLUX_ENCLOSING_ID"
                                                         : "FLUX_JOB_ID");
  job.nodes = std::max(1, number(env, "FLUX_JOB_NNODES"));
  job.tasks = number(env, "FLUX_JOB_SIZE");
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
  if (env("JOB_ID") != nullptr && env("SGE_TASK_ID") != nullptr)
    return grid_engine_job(env);
  return {};
}

BatchJob asked_batch_job(const Environment& env, const Ask& ask) {
  BatchJob job = batch_job(env);
  if (job.kind != BatchJob::Kind::kFlux) return job;
  std::istringstream names(ask({"flux", "hostlist", "--expand", "local"}));
  // A test's instance has several brokers on one host.
  for (std::string name; names >> name;)
    if (std::ranges::find(job.hosts, name, &HostSlots::name) == job.hosts.end())
      job.hosts.push_back({name, 0});
  if (!job.hosts.empty()) job.nodes = static_cast<int>(job.hosts.size());
  return job;
}

std::string ask_command(const std::vector<std::string>& command) {
  constexpr double kTimeout_s = 5;
  try {
    const auto result = output_of(command, kTimeout_s);
    return result.exit_code == 0 ? result.output : "";
  } catch (const DeviceError&) {
    return "";
  }
}

std::vector<HostSlots> hosts_for_mpirun(const std::string& hostfile,
                                        const BatchJob& job) {
  return hostfile.empty() ? job.hosts : read_hostfile(hostfile);
}

std::vector<HostSlots> hosts_of_run(const std::string& hostfile,
                                    const Environment& env, const Ask& ask) {
  const BatchJob job =
      hostfile.empty() ? asked_batch_job(env, ask) : BatchJob();
  const std::string& file = hostfile.empty() ? job.nodefile : hostfile;
  auto hosts = hosts_for_mpirun(file, job);
  const std::string list = text(env, "SLURM_JOB_NODELIST");
  if (job.kind != BatchJob::Kind::kSlurm || list.empty()) return hosts;
  std::istringstream lines(ask({"scontrol", "show", "hostnames", list}));
  for (std::string name; lines >> name;) hosts.push_back({name, 0});
  return hosts;
}

}  // namespace chexnet
