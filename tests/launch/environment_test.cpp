#include "chexnet/launch/environment.hpp"

#include "chexnet/core/shell_words.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "support/catch.hpp"
#include "support/fake_environment.hpp"

using namespace chexnet;

TEST_CASE("a rank knows its launcher") {
  CHECK_FALSE(started_as_rank(fake({})));
  // A batch script is no rank.
  CHECK_FALSE(started_as_rank(fake({{"SLURM_NTASKS", "4"}})));
  CHECK(started_as_rank(fake({{"OMPI_COMM_WORLD_SIZE", "2"}})));
  CHECK(started_as_rank(fake({{"PMIX_RANK", "0"}})));
  CHECK(started_as_rank(fake({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})));
  CHECK(started_as_rank(fake({{"PALS_RANKID", "0"}})));

  // A process that starts ranks has set the variable for them, and is none.
  CHECK(started_by_parent(
      fake({{"OMPI_COMM_WORLD_SIZE", "2"}, {"CHEXNET_PARENT", "1.5"}})));
  CHECK_FALSE(started_by_parent(fake({{"CHEXNET_PARENT", "1.5"}})));
  CHECK_FALSE(started_by_parent(fake({{"OMPI_COMM_WORLD_SIZE", "2"}})));
}

TEST_CASE("processes that do not know each other are told the right command") {
  struct Case {
    std::map<std::string, std::string> env;
    int world;
    const char* part;  // empty = no problem
  };
  const std::vector<Case> cases = {
      {{}, 1, ""},
      {{{"SLURM_NTASKS", "4"}}, 1, ""},
      {{{"SLURM_STEP_NUM_TASKS", "4"}}, 1, "srun --mpi=pmix"},
      {{{"SLURM_STEP_NUM_TASKS", "4"}}, 4, ""},
      {{{"SLURM_STEP_NUM_TASKS", "2"},
        {"OMPI_COMM_WORLD_RANK", "0"},
        {"OMPI_COMM_WORLD_SIZE", "1"}},
       1,
       ""},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}}, 1, "mpirun"},
      {{{"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}, 1, "torchrun"}};
  for (const auto& c : cases) {
    const std::string text = singleton_problem(fake(c.env), c.world);
    INFO(text);
    CHECK((std::string(c.part).empty()
               ? text.empty()
               : text.find(c.part) != std::string::npos));
  }
}

TEST_CASE("a program of a bundle is started again by the bundle's script") {
  const auto words = [](std::map<std::string, std::string> env) {
    return command_text(
        command_words(fake(std::move(env)), "/b/bin/chexnet-train"));
  };
  CHECK(words({}) == "/b/bin/chexnet-train");
  CHECK(words({{"CHEXNET_PROGRAM", "/b/run"}}) == "/b/run");
  CHECK(words({{"CHEXNET_PROGRAM", "/b/run"}, {"CHEXNET_TORCH", "/t"}}) ==
        "/b/run --torch /t");
  CHECK(words({{"CHEXNET_PROGRAM", "/other/run"}}) == "/b/bin/chexnet-train");
}

TEST_CASE("habits of torchrun under srun get the fix") {
  const auto step =
      fake({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_CPUS_PER_TASK", "8"}});
  CHECK(idle_gpus_problem(step, 4, 1).find("--ntasks-per-node=4 --mpi=pmix") !=
        std::string::npos);
  CHECK(idle_gpus_problem(step, 4, 4).empty());
  // --gpus-per-task: each rank sees its own
  CHECK(idle_gpus_problem(step, 1, 2).empty());
  CHECK(idle_gpus_problem(fake({{"OMPI_COMM_WORLD_RANK", "0"}}), 4, 1).empty());
  const std::string narrow = narrow_step_problem(step, 1);
  CHECK(narrow.find("srun -c 8") != std::string::npos);
  // An exported variable would hold for mpirun's own srun too.
  CHECK(narrow.find("SRUN_CPUS_PER_TASK") == std::string::npos);
  CHECK(narrow_step_problem(step, 8).empty());
  CHECK(narrow_step_problem(fake({{"SLURM_CPUS_PER_TASK", "8"}}), 1).empty());
}

TEST_CASE("cores are shared between the ranks that are bound to them") {
  CHECK(threads_for(20, 2) == 10);
  CHECK(threads_for(2, 4) == 1);
  CHECK(threads_for(0, 0) == 1);
}
