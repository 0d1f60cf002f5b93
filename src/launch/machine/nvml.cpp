// NVML is looked up by name at run time, so that building needs no header of
// NVIDIA and starting no driver. The structs and numbers below repeat nvml.h,
// of the versions that the functions' names end in (_v2, _v3). What a driver
// does not have stays unknown: -1, empty or false.
#include "chexnet/launch/machine/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <limits>
#include <utility>

#include "chexnet/core/shared_library.hpp"

namespace chexnet {
namespace {

using Device = void*;
using EventSet = void*;
constexpr int kNvmlSuccess = 0;
constexpr unsigned kClockSm = 1, kTemperatureGpu = 0, kEccUncorrected = 1,
                   kEccVolatile = 0;
constexpr unsigned long long kEventXid = 8;
constexpr unsigned kTextSize = 96;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

// "00000000:18:00.0" as Linux writes it: a domain of four digits.
std::string linux_bus_id(const char* nvml) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(nvml, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
    return nvml;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", domain, bus,
                device, function);
  return text.data();
}

// NVML's word for "not available" is all bits.
double bytes_of(unsigned long long used) {
  return used == std::numeric_limits<unsigned long long>::max()
             ? -1
             : static_cast<double>(used);
}

}  // namespace

struct Nvml::Calls {
  Lookup lookup;
  EventSet events = nullptr;
  Device watched = nullptr;

  template <class F>
  F find(const char* name) const {
    return reinterpret_cast<F>(lookup(name));
  }
  // Calls a function of the library; false when it is absent or fails.
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    const auto function = find<int (*)(Arguments...)>(name);
    return function != nullptr && function(arguments...) == kNvmlSuccess;
  }
  std::string text(const char* name, Device device) const {
    std::array<char, kTextSize> value{};
    return call(name, device, value.data(), kTextSize) ? value.data() : "";
  }
  double number(const char* name, Device device, double scale = 1) const {
    unsigned value = 0;
    return call(name, device, &value) ? scale * value : -1;
  }
  std::vector<Device> devices() const {
    unsigned count = 0;
    call("nvmlDeviceGetCount_v2", &count);
    std::vector<Device> found;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      if (call("nvmlDeviceGetHandleByIndex_v2", i, &device))
        found.push_back(device);
    }
    return found;
  }

  GpuState state_of(Device device) const {
    GpuState gpu;
    gpu.name = text("nvmlDeviceGetName", device);
    gpu.uuid = text("nvmlDeviceGetUUID", device);
    PciInfo pci{};
    if (call("nvmlDeviceGetPciInfo_v3", device, &pci))
      gpu.bus_id = linux_bus_id(pci.bus_id);
    read_load(device, gpu);
    read_errors(device, gpu);
    gpu.persistence =
        static_cast<int>(number("nvmlDeviceGetPersistenceMode", device));
    gpu.compute_mode =
        static_cast<int>(number("nvmlDeviceGetComputeMode", device));
    read_mig(device, gpu);
    read_processes(device, gpu);
    return gpu;
  }

  void read_load(Device device, GpuState& gpu) const {
    MemoryInfo memory{};
    if (call("nvmlDeviceGetMemoryInfo", device, &memory)) {
      gpu.memory_bytes = static_cast<double>(memory.total);
      gpu.memory_used_bytes = static_cast<double>(memory.used);
    }
    Utilization busy{};
    if (call("nvmlDeviceGetUtilizationRates", device, &busy))
      gpu.utilization_percent = std::min(busy.gpu, 100U);
    gpu.power_w = number("nvmlDeviceGetPowerUsage", device, 1e-3);
    unsigned long long millijoules = 0;
    if (call("nvmlDeviceGetTotalEnergyConsumption", device, &millijoules))
      gpu.energy_j = 1e-3 * static_cast<double>(millijoules);
    unsigned value = 0;
    if (call("nvmlDeviceGetClockInfo", device, kClockSm, &value))
      gpu.sm_clock_mhz = value;
    if (call("nvmlDeviceGetTemperature", device, kTemperatureGpu, &value))
      gpu.temperature_c = value;
    unsigned long long reasons = 0;
    if (call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons))
      gpu.throttle_reasons = reasons;
  }

  void read_errors(Device device, GpuState& gpu) const {
    unsigned long long value = 0;
    if (call("nvmlDeviceGetTotalEccErrors", device, kEccUncorrected,
             kEccVolatile, &value))
      gpu.uncorrected_ecc = static_cast<int64_t>(value);
  }

  void read_mig(Device device, GpuState& gpu) const {
    unsigned now = 0, pending = 0, slots = 0;
    gpu.mig = call("nvmlDeviceGetMigMode", device, &now, &pending) && now == 1;
    if (!gpu.mig || !call("nvmlDeviceGetMaxMigDeviceCount", device, &slots))
      return;
    for (unsigned i = 0; i < slots; ++i) {
      Device part = nullptr;
      if (call("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &part))
        gpu.mig_uuids.push_back(text("nvmlDeviceGetUUID", part));
    }
  }

  void read_processes(Device device, GpuState& gpu) const {
    std::array<ProcessInfo, 64> processes{};
    unsigned count = processes.size();
    if (!call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count,
              processes.data()))
      return;
    for (unsigned i = 0; i < count; ++i)
      gpu.processes.push_back(
          {processes[i].pid, bytes_of(processes[i].used_bytes)});
  }

  // The GPU with this id, or the one that holds the MIG device with it. NVML
  // does not find a MIG device by CUDA's id, so its own list is the second way.
  Device find_gpu(const std::string& uuid) const {
    Device found = nullptr;
    if (call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &found)) {
      Device whole = nullptr;
      return call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", found, &whole)
                 ? whole
                 : found;
    }
    for (Device device : devices()) {
      GpuState gpu;
      gpu.uuid = text("nvmlDeviceGetUUID", device);
      read_mig(device, gpu);
      if (gpu.has_id(uuid)) return device;
    }
    return nullptr;
  }
};

Nvml::Nvml(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}

bool Nvml::watch(const std::string& uuid) {
  assert(calls_->watched == nullptr);
  calls_->watched = calls_->find_gpu(uuid);
  if (calls_->watched == nullptr) return false;
  if (!calls_->call("nvmlEventSetCreate", &calls_->events))
    calls_->events = nullptr;
  if (calls_->events != nullptr)
    calls_->call("nvmlDeviceRegisterEvents", calls_->watched, kEventXid,
                 calls_->events);
  return true;
}

GpuState Nvml::watched() const {
  assert(calls_->watched != nullptr);
  GpuState gpu;
  calls_->read_load(calls_->watched, gpu);
  return gpu;
}

std::unique_ptr<Nvml> Nvml::open() {
  void* library = open_shared_library("libnvidia-ml.so.1");
  if (library == nullptr) return nullptr;
  return open_library(
      [library](const char* name) { return dlsym(library, name); });
}

std::unique_ptr<Nvml> Nvml::open_library(Lookup lookup) {
  assert(lookup);
  auto calls = std::make_unique<Calls>();
  calls->lookup = std::move(lookup);
  if (!calls->call("nvmlInit_v2")) return nullptr;
  return std::unique_ptr<Nvml>(new Nvml(std::move(calls)));
}

Nvml::~Nvml() {
  if (calls_->events != nullptr)
    calls_->call("nvmlEventSetFree", calls_->events);
  calls_->call("nvmlShutdown");
}

std::string Nvml::driver_version() const {
  std::array<char, kTextSize> value{};
  return calls_->call("nvmlSystemGetDriverVersion", value.data(), kTextSize)
             ? value.data()
             : "";
}

std::vector<GpuState> Nvml::gpus() const {
  std::vector<GpuState> states;
  for (Device device : calls_->devices()) {
    states.push_back(calls_->state_of(device));
    states.back().index = static_cast<int>(states.size()) - 1;
  }
  return states;
}

std::vector<std::string> Nvml::new_xids() {
  std::vector<std::string> found;
  EventData event{};
  constexpr unsigned kNoWait = 0;
  while (calls_->events != nullptr &&
         calls_->call("nvmlEventSetWait_v2", calls_->events, &event, kNoWait))
    found.push_back(calls_->text("nvmlDeviceGetUUID", event.device) + " Xid " +
                    std::to_string(event.data));
  return found;
}

}  // namespace chexnet
