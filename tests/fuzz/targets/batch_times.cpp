// The output of squeue, qstat, bjobs and flux about the time that is left, and
// a job's variables and files of batch systems.
#include "chexnet/launch/batch_system.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

// A job of the batch system at `kind` of kMarks: all that it says is `text`.
constexpr const char* kMarks[] = {"FLUX_URI", "SLURM_JOB_ID", "PBS_JOBID",
                                  "LSB_JOBID", "JOB_ID"};
void check_job(size_t kind, const std::string& text, const std::string& file) {
  const Environment env = [&](const char* name) -> const char* {
    const std::string_view asked = name;
    if (asked == "FLUX_PROXY_REMOTE") return nullptr;
    for (size_t other = 0; other < std::size(kMarks); ++other)
      if (other != kind && asked == kMarks[other]) return nullptr;
    const bool names_a_file = asked.ends_with("FILE");
    return names_a_file ? file.c_str() : text.c_str();
  };
  accepted<ConfigError>([&] {  // as of a host file
    const BatchJob job = job_with_hosts(env, [&](const auto&) { return text; });
    require(job.kind != BatchJob::Kind::kNone, "there is a job");
    require(job.nodes >= 0 && job.tasks >= 0, "counts are not negative");
    for (const auto& host : job.hosts)
      require(!host.name.empty() && host.slots >= 0, "a host has a name");
  });
}

void run(Bytes bytes) {
  const std::string text = text_of(bytes);
  if (const auto seconds = duration_s(text))
    require(*seconds >= 0, "a time is not negative");
  const Environment nothing = [](const char*) { return nullptr; };
  using enum BatchJob::Kind;
  for (const auto kind : {kNone, kSlurm, kPbs, kLsf, kGridEngine, kFlux}) {
    BatchJob job;
    job.kind = kind;
    job.id = "1";
    job_seconds_left(
        job, nothing,
        [&](const std::vector<std::string>&) { return text_of(bytes); }, 5);
  }
  static MemoryFile file;
  const std::string path = file.holding(bytes);
  for (size_t mark = 0; mark < std::size(kMarks); ++mark)
    check_job(mark, text, path);
}

std::vector<std::string> seeds() {
  return {"1-02:03:04\n",
          "59:30",
          "UNLIMITED",
          "4",
          "Job Id: 1\n    Resource_List.walltime = 02:00:00\n"
          "    resources_used.walltime = 00:10:00\n",
          "12:30 L,1500.0/host,45000 second(s)\n",
          "hard resource_list:  h_rt=3600,mem=4G\n",
          "node1 4 node2 2",
          "node1 4 all.q@node1 UNDEFINED\nnode2 2 all.q@node2 UNDEFINED\n",
          "node1\nnode1\nnode2\n"};
}

const Registered kTarget{{"batch_times", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
