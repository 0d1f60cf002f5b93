#include "chexnet/launch/batch_system.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "chexnet/core/error.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/hosts.hpp"

namespace chexnet {
namespace {

std::string text(const Environment& env, const char* name) {
  const char* value = env(name);
  return value == nullptr ? "" : value;
}
// The first number in a value like "4", "2(x3)" or "gpu:4".
int number(const Environment& env, const char* name) {
  const std::string value = text(env, name);
  const auto digit = value.find_first_of("0123456789");
  return digit == std::string::npos ? 0 : std::atoi(value.c_str() + digit);
}

// The value of "    key = value" in qstat's long listing.
std::string listed(const std::string& listing, const std::string& key) {
  const auto at = listing.find(key + " = ");
  if (at == std::string::npos) return "";
  const auto begin = at + key.size() + 3;
  return listing.substr(begin, listing.find('\n', begin) - begin);
}

}  // namespace

BatchJob batch_job(const Environment& env) {
  BatchJob job;
  if (env("SLURM_JOB_ID") != nullptr) {
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
  } else if (env("PBS_JOBID") != nullptr) {
    job.kind = BatchJob::Kind::kPbs;
    job.id = text(env, "PBS_JOBID");
    job.nodefile = text(env, "PBS_NODEFILE");
    job.host_cpus = number(env, "NCPUS");
    job.restarts = number(env, "CHEXNET_SUBMISSION");
    // PBS keeps the file on the job's first host; the others know of it by name
    // only.
    std::error_code error;
    if (std::filesystem::exists(job.nodefile, error)) {
      const auto hosts = read_hostfile(job.nodefile);
      job.nodes = std::max<int>(1, static_cast<int>(hosts.size()));
      for (const auto& host : hosts) job.tasks += host.slots;
    }
  }
  return job;
}

std::optional<double> duration_s(const std::string& text) {
  double days = 0, seconds = 0;
  size_t at = 0;
  const auto dash = text.find('-');
  if (text.empty() ||
      text.find_first_not_of("0123456789:-") != std::string::npos)
    return std::nullopt;
  if (dash != std::string::npos) {
    days = std::atof(text.substr(0, dash).c_str());
    at = dash + 1;
  }
  int parts = 0;
  for (size_t end = 0; at <= text.size(); at = end + 1, ++parts) {
    end = std::min(text.find(':', at), text.size());
    if (end == at) return std::nullopt;
    seconds = 60 * seconds + std::atof(text.substr(at, end - at).c_str());
  }
  if (parts > 3) return std::nullopt;
  // Behind days come hours, minutes, seconds, of which the last may be missing.
  for (; dash != std::string::npos && parts < 3; ++parts) seconds *= 60;
  return 86400 * days + seconds;
}

std::optional<double> job_seconds_left(const BatchJob& job,
                                       const Environment& env, const Ask& ask,
                                       double job_age_s) {
  if (job.kind == BatchJob::Kind::kSlurm) {
    std::string left = ask({"squeue", "-h", "-j", job.id, "-o", "%L"});
    std::erase_if(left, [](char c) { return c <= ' '; });
    return duration_s(left);
  }
  if (job.kind != BatchJob::Kind::kPbs) return std::nullopt;
  const std::string listing = ask({"qstat", "-f", job.id});
  const auto limit = duration_s(listed(listing, "Resource_List.walltime"));
  const auto used = duration_s(listed(listing, "resources_used.walltime"));
  // The used time is refreshed every few minutes; the job's age is never
  // behind.
  if (limit) return *limit - std::max(used.value_or(0), job_age_s);
  const auto torque = duration_s(text(env, "PBS_WALLTIME"));
  return torque ? std::optional(*torque - job_age_s) : std::nullopt;
}

std::optional<double> job_seconds_left(const BatchJob& job) {
  constexpr double kTimeout_s = 5;
  struct stat file {};
  double age = 0;
  if (!job.nodefile.empty() && stat(job.nodefile.c_str(), &file) == 0)
    age = std::difftime(std::time(nullptr), file.st_mtime);
  return job_seconds_left(
      job, process_environment(),
      [](const std::vector<std::string>& command) {
        try {
          const auto result = output_of(command, kTimeout_s);
          return result.exit_code == 0 ? result.output : "";
        } catch (const DeviceError&) {
          return std::string();
        }
      },
      age);
}

}  // namespace chexnet
