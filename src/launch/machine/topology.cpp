// CPUs and InfiniBand adapters are hwloc's. GPUs are hwloc's PCI devices joined
// by bus id with NVML's list, which alone knows UUIDs; where hwloc sees no PCI
// devices, as in some containers, NVML's list is all. CPUs and NUMA nodes carry
// the kernel's numbers, cores and packages hwloc's logical ones.
#include "chexnet/launch/machine/topology.hpp"

#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

constexpr unsigned kNvidia = 0x10de;
// Base class of VGA and 3D controllers.
constexpr unsigned kDisplayClass = 0x03;

using Topology =
    std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  hwloc_topology_init(&raw);
  Topology topology(raw, hwloc_topology_destroy);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(raw) != 0)
    throw DeviceError(
        "[machine] hwloc cannot read this machine's topology. Hint: is "
        "/sys mounted? Unset HWLOC_XMLFILE and HWLOC_SYNTHETIC");
  return topology;
}

int ancestor_index(hwloc_topology_t topology, hwloc_obj_t object,
                   hwloc_obj_type_t type) {
  const hwloc_obj_t found =
      hwloc_get_ancestor_obj_by_type(topology, type, object);
  return found == nullptr ? 0 : static_cast<int>(found->logical_index);
}

int numa_of(hwloc_topology_t topology, hwloc_const_cpuset_t cpus) {
  // The first node that holds the CPUs; memory nodes hang off the tree in
  // hwloc 2.
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE,
                                            node)) != nullptr)
    if (!hwloc_bitmap_iszero(cpus) &&
        hwloc_bitmap_isincluded(cpus, node->cpuset))
      return static_cast<int>(node->os_index);
  return -1;
}

DeviceLocation place_of(hwloc_topology_t topology, hwloc_obj_t device) {
  DeviceLocation place;
  const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
  if (near == nullptr || near->cpuset == nullptr) return place;
  place.numa = numa_of(topology, near->cpuset);
  if (near->type == HWLOC_OBJ_PACKAGE)
    place.package = static_cast<int>(near->logical_index);
  else if (const auto above = hwloc_get_ancestor_obj_by_type(
               topology, HWLOC_OBJ_PACKAGE, near))
    place.package = static_cast<int>(above->logical_index);
  else if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) <= 1)
    place.package = 0;
  return place;
}

std::string bus_id_of(hwloc_obj_t pci) {
  const auto& a = pci->attr->pcidev;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", a.domain, a.bus,
                a.dev, a.func);
  return text.data();
}

// The kernel's word where hwloc sees no PCI devices.
int numa_of_bus(const std::string& bus_id) {
  std::ifstream file("/sys/bus/pci/devices/" + bus_id + "/numa_node");
  int node = -1;
  file >> node;
  return node;
}

}  // namespace

const DeviceLocation* Machine::gpu_of(const std::string& uuid) const {
  for (const auto& gpu : gpus)
    if (std::ranges::any_of(gpu.uuids,
                            [&](const auto& id) { return same_gpu(id, uuid); }))
      return &gpu;
  return nullptr;
}

Machine read_machine(const std::vector<GpuState>& gpus) {
  const Topology topology = load_topology();
  hwloc_topology_t t = topology.get();
  Machine machine;
  machine.packages =
      std::max(1, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE));
  machine.numa_nodes =
      std::max(1, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE));
  hwloc_obj_t unit = nullptr;
  while ((unit = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, unit)) != nullptr)
    machine.cpus.push_back({static_cast<int>(unit->os_index),
                            ancestor_index(t, unit, HWLOC_OBJ_CORE),
                            std::max(0, numa_of(t, unit->cpuset)),
                            ancestor_index(t, unit, HWLOC_OBJ_PACKAGE)});
  std::ranges::sort(machine.cpus, {}, &Cpu::id);

  hwloc_obj_t device = nullptr;
  while ((device = hwloc_get_next_pcidev(t, device)) != nullptr) {
    const auto& attributes = device->attr->pcidev;
    if (attributes.vendor_id != kNvidia ||
        attributes.class_id >> 8 != kDisplayClass)
      continue;
    DeviceLocation place = place_of(t, device);
    place.bus_id = bus_id_of(device);
    for (hwloc_obj_t child = device->io_first_child; child != nullptr;
         child = child->next_sibling)
      if (child->name != nullptr &&
          std::string(child->name).starts_with("cuda"))
        place.name = child->name;
    machine.gpus.push_back(std::move(place));
  }
  for (const auto& gpu : gpus) {
    auto found =
        std::ranges::find(machine.gpus, gpu.bus_id, &DeviceLocation::bus_id);
    if (found == machine.gpus.end()) {
      DeviceLocation place;
      place.bus_id = gpu.bus_id;
      place.numa = numa_of_bus(gpu.bus_id);
      found = machine.gpus.insert(machine.gpus.end(), std::move(place));
    }
    found->uuids = gpu.mig_uuids;
    found->uuids.push_back(gpu.uuid);
    if (found->name.empty()) found->name = gpu.name;
  }
  std::ranges::sort(machine.gpus, {}, &DeviceLocation::bus_id);

  device = nullptr;
  while ((device = hwloc_get_next_osdev(t, device)) != nullptr) {
    if (device->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
    DeviceLocation place = place_of(t, device);
    place.name = device->name;
    machine.hcas.push_back(std::move(place));
  }
  return machine;
}

std::string machine_text(const Machine& machine) {
  std::set<std::pair<int, int>> cores;
  for (const auto& cpu : machine.cpus) cores.insert({cpu.package, cpu.core});
  std::string text = counted(machine.packages, "socket") + ", " +
                     counted(machine.numa_nodes, "NUMA node") + ", " +
                     counted(std::ssize(cores), "core");
  if (machine.cpus.size() != cores.size())
    text += " (" + std::to_string(machine.cpus.size()) + " hardware threads)";
  text +=
      ", " + (machine.gpus.empty() ? "no GPU"
                                   : counted(std::ssize(machine.gpus), "GPU"));
  for (const auto& hca : machine.hcas) text += ", " + hca.name;
  return text;
}

}  // namespace chexnet
