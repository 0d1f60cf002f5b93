#include "chexnet/launch/machine/gpu_access.hpp"

#include "support/catch.hpp"

using namespace chexnet;

namespace {

const GpuBuild kBuild{
    "cuda13", 13, {"sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"}};

// A host whose driver shows `gpus` GPUs of one architecture.
GpuFacts host_of(int gpus, int major, int minor) {
  GpuFacts facts;
  facts.on_bus = gpus;
  facts.driver = {true, 0, "", 13000, {}};
  for (int i = 0; i < gpus; ++i)
    facts.driver.gpus.push_back({"Tesla V100-SXM2-16GB", major, minor});
  return facts;
}

}  // namespace

TEST_CASE("code serves GPUs of its generation that are not older") {
  const GpuBuild build{"cuda13", 13, {"sm_75", "sm_86", "sm_90a"}};
  CHECK(has_code_for(build, 7, 5));
  CHECK(has_code_for(build, 8, 6));
  CHECK(has_code_for(build, 8, 9));
  CHECK_FALSE(has_code_for(build, 7, 0));
  CHECK_FALSE(has_code_for(build, 8, 0));
  CHECK(has_code_for(build, 9, 0));
  CHECK_FALSE(has_code_for({"", 13, {"sm_90a"}}, 9, 1));  // of that chip alone
  CHECK_FALSE(has_code_for(build, 12, 0));
  // PTX is translated for whatever is newer.
  CHECK(has_code_for({"", 13, {"compute_90"}}, 12, 0));
  CHECK_FALSE(has_code_for({"", 13, {"compute_90"}}, 8, 0));
}

TEST_CASE("a host without GPUs, or with GPUs that serve, has no problem") {
  CHECK(gpu_problem({}, kBuild).empty());
  CHECK(gpu_problem(host_of(4, 8, 0), kBuild).empty());
}

TEST_CASE("what keeps GPUs from being used is named with its remedy") {
  struct Case {
    const char* name;
    GpuFacts facts;
    GpuBuild build;
    const char *what, *remedy;
  };
  std::vector<Case> cases;
  const auto add = [&](const char* name, const GpuFacts& facts,
                       const char* what, const char* remedy,
                       const GpuBuild& build = kBuild) {
    cases.push_back({name, facts, build, what, remedy});
  };
  GpuFacts bare;  // GPUs, and no driver: a container without --nv
  bare.on_bus = 4;
  add("container", bare, "this host has 4 NVIDIA GPUs, but there is no driver",
      "--nv");
  GpuFacts hidden = host_of(0, 0, 0);
  hidden.on_bus = 1;
  add("cgroup", hidden, "has 1 NVIDIA GPU, but the driver shows none",
      "--gpus-per-node");
  hidden.visible_devices = "7";
  add("variable", hidden, "CUDA_VISIBLE_DEVICES is \"7\"",
      "unset or mend CUDA_VISIBLE_DEVICES");
  GpuFacts of_job = host_of(0, 0, 0);
  of_job.of_job = 2;
  add("job", of_job, "the batch job was given 2 GPUs", "launch.device=cpu");
  GpuFacts broken = host_of(0, 0, 0);
  broken.driver.error = 803;
  broken.driver.error_name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
  add("mismatch", broken, "different versions", "restart this host");
  broken.driver.error = 4711;
  broken.driver.error_name = "";
  add("unknown", broken, "does not start (CUDA error 4711)", "dmesg");
  GpuFacts old = host_of(4, 7, 5);
  old.driver.version = 12020;
  add("driver", old, "serves CUDA 12.2, and this build (cuda13) needs CUDA 13",
      "--cuda cuda12");
  add("volta", host_of(4, 7, 0), "V100-SXM2-16GB is of architecture sm_70",
      "--cuda cuda12");
  add("kepler", host_of(1, 3, 7), "sm_37", "hide this GPU");
  add("no CUDA side", host_of(2, 8, 0), "built without its CUDA side",
      "scripts/setup --gpu", {"cuda13", 0, {}});
  for (const auto& c : cases) {
    const GpuProblem problem = gpu_problem(c.facts, c.build);
    INFO(c.name << ": " << problem.text());
    CHECK_FALSE(problem.empty());
    CHECK(problem.what.find(c.what) != std::string::npos);
    CHECK(problem.remedy.find(c.remedy) != std::string::npos);
    CHECK(problem.remedy.find("launch.device=cpu") != std::string::npos);
  }
}
