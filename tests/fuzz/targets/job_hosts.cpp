// The hosts of a run as batch systems tell them: variables, files and what
// their commands print.
#include <algorithm>
#include <map>

#include "chexnet/launch/batch_system.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

using Variables = std::map<std::string, std::string>;

void run(Bytes bytes) {
  static MemoryFile file;
  const std::string path = file.holding(bytes);
  const std::string text = text_of(bytes).c_str();  // as a variable holds it
  for (const Variables& variables : std::vector<Variables>{
           {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", text}},
           {{"PBS_JOBID", "1"}, {"PBS_NODEFILE", path}},
           {{"LSB_JOBID", "1"}, {"LSB_DJOB_HOSTFILE", path}},
           {{"LSB_JOBID", "1"}, {"LSB_MCPU_HOSTS", text}},
           {{"LSB_JOBID", "1"}, {"LSB_HOSTS", text}},
           {{"JOB_ID", "1"}, {"SGE_TASK_ID", "1"}, {"PE_HOSTFILE", path}},
           {{"FLUX_URI", "local:///x"}}}) {
    const Environment env = [&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
    const Ask ask = [&](const std::vector<std::string>&) {
      return text_of(bytes);
    };
    std::vector<HostSlots> hosts;
    if (!accepted<ConfigError>([&] { hosts = hosts_of_run("", env, ask); }))
      continue;
    for (const auto& host : hosts) {
      require(!host.name.empty() &&
                  host.name.find_first_of(" \t\n\r") == std::string::npos,
              "a host is one word");
      require(host.slots >= 0 && host.slots <= kMostSlots,
              "slots are a count that can be added up");
    }
    const BatchJob job = job_with_hosts(env, ask);
    require(job.nodes >= 1 && job.tasks >= 0, "counts are not negative");
    require(
        job.hosts.empty() || job.nodes == static_cast<int>(job.hosts.size()),
        "a job has as many nodes as hosts");
  }
}

std::vector<std::string> seeds() {
  return {"node1 4 node2 4",
          "a a b",
          "node1\nnode1\nnode2\n",
          "n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 0,0:0,1\n",
          "node1 99999999999 node2 1048576 node2 1048576",
          "node1:4\nnode2 slots=2\n"};
}

const Registered kTarget{{"job_hosts", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
