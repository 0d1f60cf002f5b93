// What squeue, qstat, bjobs and flux print about the time that is left.
#include "chexnet/launch/batch_system.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  const std::string text = text_of(bytes);
  if (const auto seconds = duration_s(text))
    require(*seconds >= 0, "a time is not negative");
  const Environment nothing = [](const char*) { return nullptr; };
  using enum BatchJob::Kind;
  for (const auto kind : {kSlurm, kPbs, kLsf, kGridEngine, kFlux}) {
    BatchJob job;
    job.kind = kind;
    job.id = "1";
    job_seconds_left(
        job, nothing,
        [&](const std::vector<std::string>&) { return text_of(bytes); }, 5);
  }
  // Variables of a job: whatever they hold, there is a job or none.
  const BatchJob job = batch_job([&](const char*) { return text.c_str(); });
  require(job.nodes >= 0 && job.tasks >= 0, "counts are not negative");
}

std::vector<std::string> seeds() {
  return {"1-02:03:04\n",
          "59:30",
          "UNLIMITED",
          "4",
          "Job Id: 1\n    Resource_List.walltime = 02:00:00\n"
          "    resources_used.walltime = 00:10:00\n",
          "12:30 L,1500.0/host,45000 second(s)\n",
          "hard resource_list:  h_rt=3600,mem=4G\n"};
}

const Registered kTarget{{"batch_times", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
