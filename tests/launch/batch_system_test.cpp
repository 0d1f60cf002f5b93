#include "chexnet/launch/batch_system.hpp"

#include <fstream>

#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/made_up_environment.hpp"

using namespace chexnet;

TEST_CASE("a batch job knows its id, shape and time left") {
  CHECK(batch_job(made_up({})).kind == BatchJob::Kind::kNone);
  const auto slurm = made_up({{"SLURM_JOB_ID", "77"},
                              {"SLURM_ARRAY_JOB_ID", "70"},
                              {"SLURM_ARRAY_TASK_ID", "3"},
                              {"SLURM_JOB_NUM_NODES", "2"},
                              {"SLURM_NTASKS", "8"},
                              {"SLURM_CPUS_ON_NODE", "40"},
                              {"SLURM_RESTART_COUNT", "1"}});
  const BatchJob array = batch_job(slurm);
  CHECK(array.id == "70_3");
  CHECK(array.nodes == 2);
  CHECK(array.tasks == 8);
  CHECK(array.host_cpus == 40);
  CHECK(array.restarts == 1);

  const ScratchFolder folder;
  std::ofstream(folder.path() / "nodes") << "a\na\nb\nb\n";
  const auto pbs =
      made_up({{"PBS_JOBID", "12[4].server"},
               {"PBS_NODEFILE", (folder.path() / "nodes").string()},
               {"PBS_WALLTIME", "600"}});
  const BatchJob job = batch_job(pbs);
  CHECK(job.nodes == 2);
  CHECK(job.tasks == 4);

  struct Case {
    const BatchJob& job;
    const Environment& env;
    const char* answer;
    double left;  // -1 = nothing
  };
  const std::vector<Case> cases = {
      {array, slurm, "1:59\n", 119},
      {array, slurm, "1-02:00:00\n", 93600},
      {array, slurm, "UNLIMITED\n", -1},
      {array, slurm, "", -1},
      {job, pbs,
       "Job Id: 12\n    Resource_List.walltime = 02:00:00\n    "
       "resources_used.walltime = "
       "00:30:00\n",
       5400},
      {job, pbs, "    Resource_List.walltime = 02:00:00\n", 7100},
      {job, pbs, "", 500},
  };
  for (const auto& c : cases) {
    std::vector<std::string> asked;
    const auto left = job_seconds_left(
        c.job, c.env,
        [&](const std::vector<std::string>& command) {
          asked = command;
          return std::string(c.answer);
        },
        100);
    CHECK(left.value_or(-1) == c.left);
    CHECK(std::ranges::count(asked, c.job.id) == 1);
  }
  CHECK(duration_s("90") == 90);
  CHECK(duration_s("1:30") == 90);
  CHECK(duration_s("2-12") == 2.5 * 86400);
  CHECK_FALSE(duration_s("1:2:3:4"));
  CHECK_FALSE(duration_s(""));
}
