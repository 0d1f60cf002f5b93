// This host as its hardware is laid out: cores, NUMA nodes, sockets
// ("packages"), and the GPUs and network adapters near them. Read by hwloc, so
// HWLOC_XMLFILE and HWLOC_SYNTHETIC replace it by another.
#pragma once

#include <string>
#include <vector>

#include "chexnet/launch/machine/nvml.hpp"

namespace chexnet {

struct Cpu {
  int id = 0;       // the OS's number of the hardware thread
  int core = 0;     // hardware threads of one core share it
  int numa = 0;     // NUMA node
  int package = 0;  // socket
};

struct DeviceLocation {
  std::string name;                // "cuda0", "mlx5_0"
  std::string bus_id;              // "0000:18:00.0"
  std::vector<std::string> uuids;  // a GPU's own and those of its MIG devices
  int numa = -1, package = -1;     // -1 = not known
};

struct Machine {
  // Those this process's control group permits; ascending id.
  std::vector<Cpu> cpus;
  std::vector<DeviceLocation> gpus;  // in order of bus id
  std::vector<DeviceLocation> hcas;  // InfiniBand, RoCE and Omni-Path adapters
  int packages = 1, numa_nodes = 1;
  // Null when unknown.
  const DeviceLocation* gpu_of(const std::string& uuid) const;
};

// `gpus`: what NVML says, which gives uuids and adds GPUs that a container
// hides from hwloc.
Machine read_machine(const std::vector<GpuState>& gpus);

// "2 sockets, 2 NUMA nodes, 40 cores (80 hardware threads), 4 GPUs, mlx5_0"
std::string machine_text(const Machine& machine);

}  // namespace chexnet
