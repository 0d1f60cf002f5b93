#include "chexnet/launch/machine/health.hpp"

#include "support/catch.hpp"

using namespace chexnet;

namespace {
std::string level(const CheckResult& finding) {
  return level_name(finding.level);
}
GpuState sound() {
  GpuState gpu;
  gpu.name = "Tesla V100";
  gpu.memory_bytes = 16e9;
  gpu.uncorrected_ecc = 0;
  gpu.persistence = 1;
  gpu.compute_mode = 0;
  gpu.throttle_reasons = 1;  // idle
  return gpu;
}
}  // namespace

TEST_CASE("drivers and versions against the build") {
  CHECK(level(check_driver("cuda13", "580.65.06")) == "PASS");
  CHECK(level(check_driver("cuda13", "570.1")) == "FAIL");
  CHECK(check_driver("cuda13", "570.1").advice.find("cuda12") !=
        std::string::npos);
  CHECK(level(check_driver("cuda12", "525.60")) == "PASS");
  CHECK(level(check_driver("cuda13", "")) == "SKIP");
  CHECK(level(check_versions("LibTorch", "2.11.0", "2.11.0")) == "PASS");
  CHECK(level(check_versions("LibTorch", "2.11.0", "2.10.0")) == "WARN");
}

TEST_CASE("troubles of a GPU are named one by one") {
  const auto levels = [](const GpuState& gpu) {
    std::string text;
    for (const auto& f : check_gpu(gpu)) text += level(f) + " ";
    return text;
  };
  CHECK(levels(sound()) == "PASS ");
  GpuState gpu = sound();
  gpu.processes = {{43, 2e9}};
  gpu.uncorrected_ecc = 3;
  gpu.throttle_reasons = 0x40;
  gpu.persistence = 0;
  gpu.mig = true;
  CHECK(levels(gpu) == "FAIL WARN WARN WARN WARN ");
  gpu = sound();
  gpu.compute_mode = 2;
  CHECK(levels(gpu) == "FAIL ");
  CHECK(throttle_text(0x44) == "power cap, hardware thermal");
}

TEST_CASE("processes of others are told from own ones, where they can be") {
  const auto pids = [](std::vector<GpuState> gpus,
                       const std::vector<unsigned>& own) {
    keep_strangers(gpus, own);
    std::vector<unsigned> left;
    for (const auto& gpu : gpus)
      for (const auto& process : gpu.processes) left.push_back(process.pid);
    return left;
  };
  GpuState first = sound(), second = sound();
  first.processes = {{42, 1e9}, {43, 1e9}};
  second.processes = {{44, 1e9}};
  using Pids = std::vector<unsigned>;
  CHECK(pids({first, second}, {42, 44}) == Pids{43});
  CHECK(pids({first, second}, {}) == Pids{42, 43, 44});  // nobody computes here
  CHECK(pids({first, second}, {7}).empty());  // another container's numbers
}

TEST_CASE("whether this build serves the GPUs is a row of its own") {
  const GpuBuild build{"cuda13", 13, {"sm_75", "sm_90"}};
  CHECK(level(check_gpu_access({}, 0, build, {})) == "SKIP");
  CHECK(check_gpu_access({}, 1, build, {}).text ==
        "1 GPU usable; this build has code for sm_75 sm_90");
  const CheckResult bad = check_gpu_access({"no", "do"}, 1, build, {});
  CHECK(level(bad) + bad.text + bad.advice == "FAILnodo");
  // A login node, whose set-up left out what the GPU nodes load.
  const CheckResult login = check_gpu_access({}, 0, build, {"gone", "mend"});
  CHECK(level(login) == "SKIP");
  CHECK(login.text.ends_with("elsewhere: gone"));
  CHECK(login.advice == "mend");
}

TEST_CASE("limits, room and pace") {
  CHECK(level(check_visible_gpus(4, 4, 4)) == "PASS");
  // Hidden from each other.
  CHECK(level(check_visible_gpus(4, 1, 4)) == "WARN");
  CHECK(level(check_visible_gpus(4, 0, 1)) == "FAIL");
  CHECK(level(check_visible_gpus(0, 0, 1)) == "SKIP");
  CHECK(level(check_locked_memory(-1, true)) == "PASS");
  CHECK(level(check_locked_memory(65536, true)) == "FAIL");
  CHECK(level(check_locked_memory(65536, false)) == "SKIP");
  // A container's default.
  CHECK(level(check_shared_memory(64e6, 8)) == "WARN");
  CHECK(level(check_shared_memory(1e6, 1)) == "FAIL");
  CHECK(level(check_shared_memory(8e9, 8)) == "PASS");
  CHECK(level(check_open_files(256)) == "WARN");
  CHECK(level(check_clock_skew(0.01, 2)) == "PASS");
  CHECK(level(check_clock_skew(90, 2)) == "WARN");
  CHECK(level(check_clock_skew(0, 1)) == "SKIP");
  CHECK(level(check_room("r", 1e12, 1e6, -1)) == "PASS");
  CHECK(level(check_room("r", 1e12, 1e6, 1e9)) == "WARN");  // the quota counts
  CHECK(level(check_room("r", 1e12, 50, -1)) == "FAIL");
  CHECK(level(check_room("r", 1e8, -1, -1)) == "FAIL");
  CHECK(level(check_read_rate("r", 2000)) == "PASS");
  CHECK(level(check_read_rate("r", 20)) == "WARN");
  CHECK(level(check_pace({1, 1.1, 1})) == "PASS");
  CHECK(level(check_pace({1, 1.6, 1})) == "WARN");
  CHECK(check_pace({1, 1.6, 1}).text.find("rank 1: 1.60") != std::string::npos);
  CHECK(level(check_pace({1})) == "SKIP");
}
