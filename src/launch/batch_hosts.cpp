// Hosts and slots of a batch job. A variable or file that makes no sense is
// refused: to ignore it would silently leave the job's other hosts idle.
#include <sstream>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/child_process.hpp"

namespace chexnet {
namespace {

constexpr const char* kFluxHosts = "flux hostlist --expand local";

// `place`: the variable and its value, a line of a file, or a command.
[[noreturn]] void refuse(const std::string& place, const std::string& problem) {
  throw ConfigError(
      "[launch] {}: {}. Hint: submit the job anew, or name its hosts by "
      "--hostfile",
      place, problem);
}

int counted(const std::string& place, const std::string& word) {
  const auto value = parsed_number<int>(word);
  if (!value || *value < 1 || *value > kMostSlots)
    refuse(place,
           formatted("'{}' is no number from 1 to {}", word, kMostSlots));
  return *value;
}

// A variable that holds a count; `unsaid` where it is absent or empty.
int count_in(const Environment& env, const char* name, int unsaid) {
  const std::string value = variable(env, name);
  return value.empty() ? unsaid : counted(name, value);
}

void add(const std::string& place, const std::string& name, int slots,
         HostTally& hosts) {
  const std::string problem = hosts.add(name, slots);
  if (!problem.empty()) refuse(place, problem);
}

// Of words that alternate: a host, its slots.
std::vector<HostSlots> counted_hosts(const std::string& place,
                                     const std::string& words) {
  HostTally hosts;
  std::istringstream stream(words);
  for (std::string name, count; stream >> name;) {
    if (!(stream >> count)) refuse(place, "'" + name + "' has no slots");
    add(place, name, counted(place, count), hosts);
  }
  return hosts.take();
}

std::vector<HostSlots> repeated_hosts(const std::string& place,
                                      const std::string& words) {
  HostTally hosts;
  std::istringstream stream(words);
  for (std::string name; stream >> name;) add(place, name, 1, hosts);
  return hosts.take();
}

std::vector<HostSlots> parallel_environment(const std::string& path) {
  constexpr const char* kVariable = "PE_HOSTFILE";
  std::istringstream file(hostfile_content(path, kVariable));
  const std::string named = hostfile_name(path, kVariable);
  HostTally tally;
  int number = 1;
  for (std::string line; std::getline(file, line); ++number) {
    const std::string place = named + ":" + std::to_string(number);
    std::istringstream words(line);
    std::string name, slots;
    if (!(words >> name)) continue;
    if (!(words >> slots)) refuse(place, "'" + name + "' has no slots");
    add(place, name, counted(place, slots), tally);
  }
  auto hosts = tally.take();
  if (hosts.empty()) refuse(named, "names no host");
  return hosts;
}

std::vector<HostSlots> lsf_hosts(const Environment& env) {
  constexpr const char* kFile = "LSB_DJOB_HOSTFILE";
  constexpr const char* kCounted = "LSB_MCPU_HOSTS";
  constexpr const char* kRepeated = "LSB_HOSTS";
  if (const std::string file = variable(env, kFile); !file.empty())
    return read_hostfile(file, kFile);
  if (const std::string words = variable(env, kCounted); !words.empty())
    return counted_hosts(kCounted, words);
  return repeated_hosts(kRepeated, variable(env, kRepeated));
}

// What `command` printed about the job that `variable` speaks of. A job always
// has hosts.
std::vector<HostSlots> asked_hosts(HostTally tally, const std::string& command,
                                   const std::string& variable) {
  auto hosts = tally.take();
  if (hosts.empty())
    refuse(command, formatted("names no host, and {} is set: it failed, or "
                              "did not end within {} s",
                              variable, kAskTimeout_s));
  return hosts;
}

// A test's instance has several brokers on one host.
std::vector<HostSlots> flux_hosts(const Ask& ask) {
  HostTally tally;
  std::istringstream names(ask({"flux", "hostlist", "--expand", "local"}));
  for (std::string name; names >> name;) add(kFluxHosts, name, 0, tally);
  return asked_hosts(std::move(tally), kFluxHosts, "FLUX_URI");
}

// A line is a name: a blank in one would else make two of it.
std::vector<HostSlots> slurm_hosts(const std::string& list, const Ask& ask) {
  const std::string command = "scontrol show hostnames " + list;
  HostTally tally;
  std::istringstream lines(ask({"scontrol", "show", "hostnames", list}));
  for (std::string name; std::getline(lines, name);)
    add(command, name, 0, tally);
  return asked_hosts(std::move(tally), command, "SLURM_JOB_NODELIST");
}

void count_hosts(BatchJob& job) {
  job.nodes = static_cast<int>(job.hosts.size());
  job.tasks = 0;
  for (const auto& host : job.hosts) job.tasks += host.slots;
}

}  // namespace

BatchJob job_with_hosts(const Environment& env, const Ask& ask) {
  using enum BatchJob::Kind;
  BatchJob job = batch_job(env);
  switch (job.kind) {
    case kNone:
      break;
    case kSlurm:
      job.nodes = count_in(env, "SLURM_JOB_NUM_NODES", 1);
      job.tasks = count_in(env, "SLURM_NTASKS", 0);
      break;
    case kPbs:
      if (!job.nodefile.empty())
        job.hosts = read_hostfile(job.nodefile, "PBS_NODEFILE");
      break;
    case kLsf:
      job.hosts = lsf_hosts(env);
      break;
    case kGridEngine:
      job.tasks = count_in(env, "NSLOTS", 0);
      if (const auto file = variable(env, "PE_HOSTFILE"); !file.empty())
        job.hosts = parallel_environment(file);
      break;
    case kFlux:
      job.hosts = flux_hosts(ask);
      break;
  }
  if (!job.hosts.empty()) count_hosts(job);
  return job;
}

std::string ask_command(const std::vector<std::string>& command) {
  try {
    const auto result = output_of(command, kAskTimeout_s);
    return result.exit_code == 0 ? result.output : "";
  } catch (const DeviceError&) {
    return "";
  }
}

BatchJob job_for_mpirun(const std::string& hostfile, const Environment& env,
                        const Ask& ask) {
  if (hostfile.empty()) return job_with_hosts(env, ask);
  BatchJob job = batch_job(env);
  job.hosts = read_hostfile(hostfile);
  count_hosts(job);
  return job;
}

std::vector<HostSlots> hosts_of_run(const std::string& hostfile,
                                    const Environment& env, const Ask& ask) {
  const BatchJob job = job_for_mpirun(hostfile, env, ask);
  const std::string list = variable(env, "SLURM_JOB_NODELIST");
  if (job.hosts.empty() && job.kind == BatchJob::Kind::kSlurm && !list.empty())
    return slurm_hosts(list, ask);
  return job.hosts;
}

}  // namespace chexnet
