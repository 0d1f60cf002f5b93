#include <map>

#include "chexnet/core/error.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/plugin.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {
Environment made_up(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}
}  // namespace

TEST_CASE("a rank knows its launcher") {
  CHECK_FALSE(started_as_rank(made_up({})));
  CHECK_FALSE(started_as_rank(made_up({{"SLURM_NTASKS", "4"}})));  // a batch script is no rank
  CHECK(started_as_rank(made_up({{"OMPI_COMM_WORLD_SIZE", "2"}})));
  CHECK(started_as_rank(made_up({{"PMIX_RANK", "0"}})));
}

TEST_CASE("processes that do not know each other are told the right command") {
  struct Case {
    std::map<std::string, std::string> env;
    int world;
    const char* part;  // empty = no problem
  };
  const std::vector<Case> cases = {{{}, 1, ""},
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
    const std::string text = singleton_problem(made_up(c.env), c.world);
    INFO(text);
    CHECK((std::string(c.part).empty() ? text.empty() : text.find(c.part) != std::string::npos));
  }
}

TEST_CASE("cores are shared between the ranks that are bound to them") {
  CHECK(threads_for(20, 2) == 10);
  CHECK(threads_for(2, 4) == 1);
  CHECK(threads_for(0, 0) == 1);
  CHECK(cpu_list_text({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK_FALSE(allowed_cpus().empty());
}

TEST_CASE("the mpirun command maps by socket and oversubscribes only when it must") {
  CHECK(mpirun_command(2, 4, false, {"-q"}, "/bin/x", {"train", "a b"}) ==
        std::vector<std::string>{"mpirun", "--map-by", "socket", "-np", "2", "-q", "/bin/x",
                                 "train", "a b"});
  const auto root = mpirun_command(4, 2, true, {}, "x", {});
  CHECK(std::ranges::count(root, "--oversubscribe") == 1);
  CHECK(std::ranges::count(root, "--allow-run-as-root") == 1);
}

TEST_CASE("a parent passes on the exit code of its command") {
  CHECK(run_as_parent({"sh", "-c", "exit 75"}) == 75);
  CHECK(run_as_parent({"sh", "-c", "kill -9 $$"}) == 137);
  CHECK(run_as_parent({"/no/such/program"}) == static_cast<int>(ExitCode::kDevice));
}

TEST_CASE("a run folder has one user at a time") {
  const ScratchFolder folder;
  {
    const RunLock lock(folder.path());
    CHECK(error_of<CheckpointError>([&] {
            RunLock second(folder.path());
          }).find("in use by process") != std::string::npos);
  }
  CHECK(error_of<CheckpointError>([&] { RunLock again(folder.path()); }).empty());
}

TEST_CASE("an absent plug-in is named") {
  CHECK_FALSE(Plugin::exists("libno_such_thing.so"));
  CHECK(error_of<DeviceError>([] { Plugin("libno_such_thing.so"); }).find("libno_such_thing.so") !=
        std::string::npos);
}
