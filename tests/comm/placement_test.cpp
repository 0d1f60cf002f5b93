#include "chexnet/comm/placement.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "chexnet/launch/machine/affinity.hpp"
#include "support/catch.hpp"
#include "support/fake_gpus.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// The warnings of one rank on the first of two GPUs, on which these processes
// are too.
std::string warnings(const std::string& processes) {
  const ScratchFolder folder;
  const auto file = folder.path() / "gpus.yaml";
  std::ofstream(file) << "driver: 580.65.06\ngpus:\n"
                      << "  - {name: V100, uuid: GPU-0, processes: ["
                      << processes << "]}\n"
                      << "  - {name: V100, uuid: GPU-1, processes: "
                      << "[{pid: 4713, bytes: 1}]}\n";
  const FakeGpus gpus(file.string());
  const auto solo = solo_communicator();
  std::string text;
  for (const auto& line :
       place_ranks(*solo, BindPolicy::kOff, {"GPU-0", "V100"}, false).warnings)
    text += line + "\n";
  return text;
}

std::string process(unsigned pid) {
  return "{pid: " + std::to_string(pid) + ", bytes: 1073741824}";
}

}  // namespace

TEST_CASE("a rank is told who else uses its GPU") {
  const std::string own = process(static_cast<unsigned>(getpid()));
  CHECK(warnings(own).empty());
  const std::string both = warnings(own + ", " + process(4711));
  CHECK(both.find("[gpu] process 4711 also uses GPU GPU-0") == 0);
  CHECK(both.find("(1.0 GiB)") != std::string::npos);
  const std::string unknown = warnings(own + ", {pid: 4711}");
  CHECK(unknown.find("GiB") == std::string::npos);
  CHECK(unknown.find("4711") != std::string::npos);
}

TEST_CASE("a rank that NVML counts otherwise is no stranger to itself") {
  CHECK(warnings(process(4711)).empty());
}

TEST_CASE("ranks on fewer CPUs than the job has are told why") {
  const std::vector<int> all = allowed_cpus();
  if (all.size() < 2) return;
  const auto solo = solo_communicator();
  const auto placed = [&](BindPolicy bind) {
    return place_ranks(*solo, bind, {}, true);
  };
  setenv("SLURM_JOB_ID", "7", 1);
  setenv("SLURM_CPUS_ON_NODE", "1", 1);  // of the step
  setenv("SLURM_JOB_CPUS_PER_NODE", "2(x3),3", 1);
  CHECK(placed(BindPolicy::kCheck).warnings.empty());
  bind_process({all.front()});
  const auto text = [&] {
    const auto warnings = placed(BindPolicy::kCheck).warnings;
    return warnings.empty() ? std::string() : warnings.front();
  };
  CHECK(text().find(": the ranks run on 1 of the 2 CPUs that the job has here. "
                    "Hint: mpirun --bind-to none") != std::string::npos);
  CHECK(placed(BindPolicy::kCheck).table.front().binding ==
        "1 of the 2 CPUs that the job has here");
  CHECK_FALSE(placed(BindPolicy::kCheck).table.front().good);
  // This may be the host that has one.
  setenv("SLURM_JOB_CPUS_PER_NODE", "2(x3),1", 1);
  CHECK(text().find("the ranks run on") == std::string::npos);
  setenv("SLURM_JOB_CPUS_PER_NODE", "2(x3),3", 1);
  setenv("SRUN_CPUS_PER_TASK", "1", 1);
  CHECK(text().find("Hint: unset SRUN_CPUS_PER_TASK") != std::string::npos);
  CHECK(placed(BindPolicy::kOff).warnings.empty());
  for (const char* name : {"SLURM_JOB_ID", "SLURM_CPUS_ON_NODE",
                           "SLURM_JOB_CPUS_PER_NODE", "SRUN_CPUS_PER_TASK"})
    unsetenv(name);
  CHECK(text().find("the ranks run on") == std::string::npos);
  bind_process(all);
}
