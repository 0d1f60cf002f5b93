// NVML through its real interface, over a fake library of the driver.
#include "chexnet/launch/machine/host_checks.hpp"
#include "chexnet/launch/machine/nvml.hpp"
#include "chexnet/launch/machine/topology.hpp"
#include "chexnet/launch/machine/usage_monitor.hpp"
#include "support/catch.hpp"
#include "support/fake_gpus.hpp"
#include "support/fixtures.hpp"
#include "support/source_file.hpp"

using namespace chexnet;

namespace {

const std::string kMachines = source_file("tests/launch/machine/machines/");

// "WARN its clock is held down …" of each finding with this name.
std::string rows(const std::vector<CheckResult>& checks,
                 const std::string& name) {
  std::string text;
  for (const auto& check : checks)
    if (check.name == name)
      text += std::string(level_name(check.level)) + " " + check.text + "\n";
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("without a driver that starts there is no NVML") {
  const FakeGpus gpus(kMachines + "v100x4.yaml");
  unsetenv("FAKE_NVML");
  CHECK(Nvml::open() == nullptr);
}

TEST_CASE("four GPUs are read out of the driver's library") {
  const FakeGpus fake(kMachines + "v100x4.yaml");
  const auto nvml = Nvml::open();
  REQUIRE(nvml);
  CHECK(nvml->driver_version() == "580.65.06");
  const auto gpus = nvml->gpus();
  REQUIRE(gpus.size() == 4);
  CHECK(gpus[1].bus_id == "0000:1a:00.0");
  CHECK(gpus[1].throttle_reasons == 0x48);
  CHECK(gpus[2].uncorrected_ecc == 3);
  REQUIRE(gpus[3].processes.size() == 2);
  CHECK(gpus[3].processes[0].bytes == 8e9);
  CHECK(gpus[3].processes[1].bytes == -1);  // all bits: not available
}

TEST_CASE("a rank's monitor asks for its own GPU alone, and for its load") {
  const FakeGpus gpus(kMachines + "v100x4.yaml");
  const auto look = sampler_of_host("GPU-11111111-aaaa");
  UsageSums sums;
  sums.add(look());
  sums.add(look());
  const Usage usage = sums.usage();
  CHECK(usage.gpu_percent == 40);
  CHECK(usage.gpu_memory_bytes == 2e9);
  CHECK(usage.gpu_clock_mhz == 405);
  CHECK(usage.gpu_temperature_c == 88);
  CHECK(usage.throttle_reasons == "hardware slowdown, hardware thermal");
  CHECK(usage.xids == std::vector<std::string>{"GPU-11111111-aaaa Xid 79",
                                               "GPU-11111111-aaaa Xid 94"});
  CHECK(gpus.calls("nvmlDeviceGetMemoryInfo") == 2);
  CHECK(gpus.calls("nvmlDeviceGetHandleByUUID") == 1);
  CHECK(gpus.calls("nvmlDeviceGetHandleByIndex_v2") == 0);
  CHECK(gpus.calls("nvmlDeviceGetComputeRunningProcesses_v3") == 0);
  CHECK(gpus.calls("nvmlDeviceRegisterEvents") == 1);
}

TEST_CASE("a MIG device is found by its number, whatever word is before it") {
  const FakeGpus gpus(kMachines + "h100x8.yaml");
  const std::string mig = "77777777-0000-1111-2222-000000000002";
  for (const char* word : {"MIG-", "GPU-"}) {  // NVML's and CUDA's
    CAPTURE(word);
    const auto nvml = Nvml::open();
    REQUIRE(nvml);
    CHECK(nvml->watch(word + mig));
    CHECK(nvml->watched().memory_used_bytes == 7e9);
    const auto gpus = nvml->gpus();
    REQUIRE(gpus.size() == 8);
    CHECK(gpus[7].has_id(word + mig));
    CHECK_FALSE(gpus[6].has_id(word + mig));
    const Machine machine = read_machine(gpus);
    REQUIRE(machine.gpu_of(word + mig) != nullptr);
    CHECK(machine.gpu_of(word + mig)->bus_id == "0000:7b:00.0");
  }
  CHECK_FALSE(Nvml::open()->watch("GPU-99999999"));
  UsageSums sums;
  sums.add(sampler_of_host("GPU-99999999")());
  CHECK(sums.usage().gpu_percent == -1);
}

TEST_CASE("doctor names each trouble of each GPU, and its own ranks are none") {
  const FakeGpus gpus(kMachines + "v100x4.yaml");
  const ScratchFolder folder;
  const auto checks = check_host({.folder = folder.path().string(),
                                  .ranks_here = 2,
                                  .visible_gpus = 4,
                                  .build = {"cuda13", 13, {"sm_70"}},
                                  .gpu_problem = {},
                                  .pins_memory = true,
                                  .pids_on_gpus = {100, 101}});
  CHECK(has(rows(checks, "driver"), "PASS 580.65.06 serves variant cuda13"));
  CHECK(has(rows(checks, "CUDA"), "PASS 4 GPUs usable"));
  CHECK(rows(checks, "GPU 0").starts_with("PASS "));
  CHECK(has(rows(checks, "GPU 1"),
            "WARN Tesla V100-SXM2-16GB: its clock is held down: hardware "
            "slowdown, hardware thermal (405 MHz, 120 W, 88 C)"));
  CHECK_FALSE(has(rows(checks, "GPU 1"), "process"));
  CHECK(has(rows(checks, "GPU 2"), "FAIL Tesla V100-SXM2-16GB: 3 uncorrected"));
  CHECK(has(rows(checks, "GPU 2"), "compute mode is prohibited"));
  CHECK(has(rows(checks, "GPU 2"), "persistence mode is off"));
  CHECK(has(rows(checks, "GPU 3"), "process 4711 uses it (7.5 GiB)"));
  CHECK(has(rows(checks, "GPU 3"),
            "process 4712 uses it (how much memory is not known)"));
}

TEST_CASE("eight GPUs, MIG and an old driver are told") {
  const FakeGpus gpus(kMachines + "h100x8.yaml");
  const ScratchFolder folder;
  const auto checks = check_host({.folder = folder.path().string(),
                                  .visible_gpus = 8,
                                  .build = {"cuda13", 13, {"sm_90"}},
                                  .gpu_problem = {"too old", "a newer one"},
                                  .pids_on_gpus = {}});
  CHECK(has(rows(checks, "driver"), "FAIL 570.86.10 is too old"));
  CHECK(rows(checks, "CUDA") == "FAIL too old\n");
  CHECK(
      has(rows(checks, "GPU 7"), "WARN NVIDIA H100 80GB HBM3: is cut into 2"));
  CHECK(has(rows(checks, "visible GPUs"), "PASS 8 of 8"));
}
