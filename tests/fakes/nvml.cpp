// A management library for tests: libnvidia-ml.so.1 over the YAML file that
// FAKE_NVML names, read at each nvmlInit. What the file leaves out of a GPU is
// "not supported", as old GPUs answer. Numbers repeat nvml.h.
//
//   driver: 580.65.06
//   gpus:
//     - {name: Tesla V100, uuid: GPU-…, bus_id: "00000000:18:00.0",
//        memory_total: 17e9, memory_used: 1e9, utilization: 97, power_w: 250,
//        sm_clock_mhz: 1380, temperature_c: 60, throttle: 0x40, ecc: 0,
//        persistence: 1, compute_mode: 0, mig: [MIG-…], xids: [79],
//        processes: [{pid: 4711, bytes: 1e9}]}  # without bytes: not available
#include <yaml-cpp/yaml.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/nvml_types.hpp"

using namespace nvml_types;

namespace {

constexpr int kOk = 0, kInvalid = 2, kNotSupported = 3, kNotFound = 6,
              kTimeout = 10, kUnknown = 999;

// A GPU, or a MIG device of one.
struct Part {
  YAML::Node node;
  std::string uuid;
  Part* whole = nullptr;  // of a MIG device
  bool watched = false;
  std::deque<unsigned long long> xids;
};

struct State {
  YAML::Node file;
  std::deque<Part> parts;    // addresses are the handles
  std::vector<Part*> whole;  // GPUs
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};
State state;
std::map<std::string, int> calls;

Part* part(void* device) { return static_cast<Part*>(device); }

int put_text(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return kInvalid;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kOk;
}

std::optional<double> figure(void* device, const char* key) {
  const YAML::Node& node = part(device)->node;
  if (!node || !node[key]) return std::nullopt;
  return node[key].as<double>();
}

int put_number(const char* function, void* device, const char* key,
               unsigned* to, double scale = 1) {
  ++calls[function];
  const auto value = figure(device, key);
  if (!value) return kNotSupported;
  *to = static_cast<unsigned>(*value * scale);
  return kOk;
}

}  // namespace

extern "C" {

// For tests: how often a function was called since the last nvmlInit.
int fake_nvml_calls(const char* function) { return calls[function]; }

int nvmlInit_v2() {
  const char* path = std::getenv("FAKE_NVML");
  if (path == nullptr) return kUnknown;
  state = {};
  calls.clear();
  state.file = YAML::LoadFile(path);
  for (const auto& node : state.file["gpus"]) {
    state.parts.push_back(
        {node, node["uuid"].as<std::string>(), nullptr, false, {}});
    Part* gpu = &state.parts.back();
    state.whole.push_back(gpu);
    for (const auto& xid : node["xids"])
      gpu->xids.push_back(xid.as<unsigned long long>());
    for (const auto& mig : node["mig"])
      state.parts.push_back({{}, mig.as<std::string>(), gpu, false, {}});
  }
  return kOk;
}
int nvmlShutdown() { return kOk; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return put_text(state.file["driver"].as<std::string>(), text, size);
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(state.whole.size());
  return kOk;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  ++calls["nvmlDeviceGetHandleByIndex_v2"];
  if (index >= state.whole.size()) return kInvalid;
  *device = state.whole[index];
  return kOk;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  ++calls["nvmlDeviceGetHandleByUUID"];
  for (auto& one : state.parts)
    if (one.uuid == uuid) return *device = &one, kOk;
  return kNotFound;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  return put_text(part(device)->node["name"].as<std::string>(), text, size);
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  return put_text(part(device)->uuid, text, size);
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  const YAML::Node& id = part(device)->node["bus_id"];
  return id ? put_text(id.as<std::string>(), info->bus_id, sizeof info->bus_id)
            : kNotSupported;
}
int nvmlDeviceGetMemoryInfo(void* device, MemoryInfo* memory) {
  ++calls["nvmlDeviceGetMemoryInfo"];
  const auto total = figure(device, "memory_total");
  if (!total) return kNotSupported;
  memory->total = static_cast<unsigned long long>(*total);
  memory->used = static_cast<unsigned long long>(
      figure(device, "memory_used").value_or(0));
  memory->free = memory->total - memory->used;
  return kOk;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* busy) {
  return put_number(__func__, device, "utilization", &busy->gpu);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return put_number(__func__, device, "power_w", milliwatts, 1e3);
}
// What power_w took since nvmlInit, plus 1 kJ from before.
int nvmlDeviceGetTotalEnergyConsumption(void* device,
                                        unsigned long long* millijoules) {
  const auto watts = figure(device, "power_w");
  if (!watts) return kNotSupported;
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - state.begin;
  *millijoules = 1'000'000 +
                 static_cast<unsigned long long>(1e3 * *watts * passed.count());
  return kOk;
}
int nvmlDeviceGetClockInfo(void* device, unsigned, unsigned* mhz) {
  return put_number(__func__, device, "sm_clock_mhz", mhz);
}
int nvmlDeviceGetTemperature(void* device, unsigned, unsigned* celsius) {
  return put_number(__func__, device, "temperature_c", celsius);
}
int nvmlDeviceGetPersistenceMode(void* device, unsigned* mode) {
  return put_number(__func__, device, "persistence", mode);
}
int nvmlDeviceGetComputeMode(void* device, unsigned* mode) {
  return put_number(__func__, device, "compute_mode", mode);
}
int nvmlDeviceGetTotalEccErrors(void* device, unsigned, unsigned,
                                unsigned long long* errors) {
  const auto value = figure(device, "ecc");
  if (!value) return kNotSupported;
  *errors = static_cast<unsigned long long>(*value);
  return kOk;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device,
                                              unsigned long long* mask) {
  const YAML::Node& node = part(device)->node["throttle"];
  if (!node) return kNotSupported;
  *mask = std::stoull(node.as<std::string>(), nullptr, 0);
  return kOk;
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* pending) {
  *now = *pending = part(device)->node["mig"] ? 1 : 0;
  return kOk;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  constexpr unsigned kSlots = 7;
  *count = kSlots;
  return kOk;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index,
                                        void** mig) {
  for (auto& one : state.parts)
    if (one.whole == device && index-- == 0) return *mig = &one, kOk;
  return kNotFound;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* device, void** whole) {
  if (part(device)->whole == nullptr) return kInvalid;
  *whole = part(device)->whole;
  return kOk;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                            ProcessInfo* processes) {
  ++calls["nvmlDeviceGetComputeRunningProcesses_v3"];
  unsigned found = 0;
  for (const auto& process : part(device)->node["processes"]) {
    const auto bytes =
        process["bytes"]
            ? static_cast<unsigned long long>(process["bytes"].as<double>())
            : std::numeric_limits<unsigned long long>::max();
    if (found < *count)
      processes[found++] = {process["pid"].as<unsigned>(), bytes, 0, 0};
  }
  *count = found;
  return kOk;
}
int nvmlEventSetCreate(void** set) {
  *set = &state;
  return kOk;
}
int nvmlEventSetFree(void*) { return kOk; }
int nvmlDeviceRegisterEvents(void* device, unsigned long long, void*) {
  ++calls["nvmlDeviceRegisterEvents"];
  part(device)->watched = true;
  return kOk;
}
int nvmlEventSetWait_v2(void*, EventData* event, unsigned) {
  constexpr unsigned long long kXid = 8;
  for (Part* gpu : state.whole) {
    if (!gpu->watched || gpu->xids.empty()) continue;
    *event = {gpu, kXid, gpu->xids.front(), 0, 0};
    gpu->xids.pop_front();
    return kOk;
  }
  return kTimeout;
}

}  // extern "C"
