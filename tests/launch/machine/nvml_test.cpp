// The management library as a table of functions: an old driver, a GPU that
// tells little, MIG.
#include "chexnet/launch/machine/nvml.hpp"

#include <cstring>
#include <map>

#include "support/catch.hpp"
#include "support/nvml_types.hpp"

using namespace chexnet;
using namespace nvml_types;

namespace {

// What the fake library does; NVML's functions carry no state.
int open_count = 0, xids_left = 0;
constexpr int kOk = 0, kNotSupported = 3;

void* handle(uintptr_t number) { return reinterpret_cast<void*>(number); }

template <class F>
void* address_of(F* function) {
  return reinterpret_cast<void*>(function);
}

// Two GPUs, handles 1 and 2; the second is cut into MIG devices 10 and 12 of
// three slots.
std::map<std::string, void*> library() {
  std::map<std::string, void*> f;
  f["nvmlInit_v2"] = address_of(+[] { return ++open_count, kOk; });
  f["nvmlShutdown"] = address_of(+[] { return --open_count, kOk; });
  f["nvmlSystemGetDriverVersion"] = address_of(+[](char* text, unsigned size) {
    std::strncpy(text, "580.65.06", size);
    return kOk;
  });
  f["nvmlDeviceGetCount_v2"] =
      address_of(+[](unsigned* count) { return *count = 2, kOk; });
  f["nvmlDeviceGetHandleByIndex_v2"] =
      address_of(+[](unsigned index, void** device) {
        return *device = handle(index + 1), kOk;
      });
  f["nvmlDeviceGetName"] = address_of(+[](void*, char* text, unsigned size) {
    std::strncpy(text, "Tesla V100", size);
    return kOk;
  });
  f["nvmlDeviceGetUUID"] =
      address_of(+[](void* device, char* text, unsigned size) {
        const auto number = std::to_string(reinterpret_cast<uintptr_t>(device));
        std::strncpy(text, ("GPU-" + number).c_str(), size);
        return kOk;
      });
  f["nvmlDeviceGetPciInfo_v3"] = address_of(+[](void*, PciInfo* info) {
    std::strcpy(info->bus_id, "00000000:18:00.0");
    return kOk;
  });
  f["nvmlDeviceGetPowerUsage"] = address_of(
      +[](void*, unsigned* milliwatts) { return *milliwatts = 250'500, kOk; });
  f["nvmlDeviceGetTemperature"] =
      address_of(+[](void*, unsigned, unsigned*) { return kNotSupported; });
  f["nvmlDeviceGetMigMode"] =
      address_of(+[](void* device, unsigned* now, unsigned* pending) {
        *now = *pending = device == handle(2) ? 1 : 0;
        return kOk;
      });
  f["nvmlDeviceGetMaxMigDeviceCount"] =
      address_of(+[](void*, unsigned* count) { return *count = 3, kOk; });
  f["nvmlDeviceGetMigDeviceHandleByIndex"] =
      address_of(+[](void*, unsigned index, void** device) {
        *device = handle(10 + index);
        return index == 1 ? kNotSupported : kOk;
      });
  f["nvmlDeviceGetComputeRunningProcesses_v3"] =
      address_of(+[](void*, unsigned* count, ProcessInfo* processes) {
        *count = 1;
        processes[0] = {4711, 1ULL << 30, 0, 0};
        return kOk;
      });
  f["nvmlEventSetCreate"] =
      address_of(+[](void** set) { return *set = handle(99), kOk; });
  f["nvmlEventSetFree"] = address_of(+[](void*) { return kOk; });
  f["nvmlDeviceRegisterEvents"] =
      address_of(+[](void*, unsigned long long, void*) { return kOk; });
  f["nvmlEventSetWait_v2"] = address_of(+[](void*, EventData* event, unsigned) {
    if (xids_left == 0) return kNotSupported;
    --xids_left;
    *event = {handle(2), 8, 79, 0, 0};
    return kOk;
  });
  return f;
}

std::unique_ptr<Nvml> open_with(std::map<std::string, void*> functions) {
  return Nvml::open_library(
      [functions = std::move(functions)](const char* name) -> void* {
        const auto found = functions.find(name);
        return found == functions.end() ? nullptr : found->second;
      });
}

}  // namespace

TEST_CASE("GPUs as the driver tells of them") {
  {
    const auto nvml = open_with(library());
    REQUIRE(nvml);
    CHECK(open_count == 1);
    CHECK(nvml->driver_version() == "580.65.06");
    const auto gpus = nvml->gpus();
    REQUIRE(gpus.size() == 2);
    CHECK(gpus[1].index == 1);
    CHECK(gpus[0].name == "Tesla V100");
    CHECK(gpus[0].uuid == "GPU-1");
    CHECK(gpus[0].bus_id == "0000:18:00.0");
    CHECK(gpus[0].power_w == Approx(250.5));
    CHECK(gpus[0].temperature_c == -1);        // not supported
    CHECK(gpus[0].utilization_percent == -1);  // no such function
    CHECK(gpus[0].memory_bytes == -1);
    CHECK(gpus[0].persistence == -1);
    CHECK_FALSE(gpus[0].mig);
    CHECK(gpus[1].mig);
    CHECK(gpus[1].mig_uuids == std::vector<std::string>{"GPU-10", "GPU-12"});
    REQUIRE(gpus[0].processes.size() == 1);
    CHECK(gpus[0].processes[0].pid == 4711);
    CHECK(gpus[0].processes[0].bytes == 1 << 30);
  }
  CHECK(open_count == 0);
}

TEST_CASE("critical errors of GPUs are told once") {
  const auto nvml = open_with(library());
  REQUIRE(nvml->watch("GPU-2"));
  xids_left = 2;
  CHECK(nvml->new_xids() ==
        std::vector<std::string>{"GPU-2 Xid 79", "GPU-2 Xid 79"});
  CHECK(nvml->new_xids().empty());
  auto old = library();
  old.erase("nvmlEventSetCreate");
  xids_left = 2;
  const auto without_events = open_with(old);
  CHECK(without_events->watch("GPU-2"));
  CHECK(without_events->new_xids().empty());
  CHECK_FALSE(open_with(old)->watch("GPU-3"));
  xids_left = 0;
}

TEST_CASE("a library that cannot start, or knows nothing, is no error") {
  CHECK(open_with({}) == nullptr);
  auto fails = library();
  fails["nvmlInit_v2"] = address_of(+[] { return kNotSupported; });
  CHECK(open_with(fails) == nullptr);
  const auto bare =
      open_with({{"nvmlInit_v2", address_of(+[] { return kOk; })}});
  REQUIRE(bare);
  CHECK(bare->gpus().empty());
  CHECK(bare->driver_version().empty());
}
