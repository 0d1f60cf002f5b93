// A rank's cores are found in three steps:
//
//   permitted  the cores this job may use
//   region     of those, the ones near the rank's GPU: its NUMA node, else its
//              socket, else all. A rank without a GPU has the cores it was
//              given
//   part       ranks of one region cut it into equal parts of whole cores, in
//              order of local rank
//
// What the launcher did stays where it is good, because a user may have meant
// it. Only a rank that is bound badly moves to its part, and those whose cores
// it then needs move with it.
#include "chexnet/launch/machine/binding.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "chexnet/launch/machine/affinity.hpp"

namespace chexnet {
namespace {

bool contains(const std::vector<int>& cpus, int cpu) {
  return std::ranges::binary_search(cpus, cpu);
}
bool intersects(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::any_of(a, [&](int cpu) { return contains(b, cpu); });
}

// Part `index` of `count` of a region, in whole cores; the whole region when it
// has fewer cores than takers.
std::vector<int> part_of(const std::vector<Cpu>& region, size_t index,
                         size_t count) {
  // In order of socket and node.
  std::map<std::tuple<int, int, int>, std::vector<int>> cores;
  for (const auto& cpu : region)
    cores[{cpu.package, cpu.numa, cpu.core}].push_back(cpu.id);
  const bool enough = cores.size() >= count;
  const size_t begin = enough ? cores.size() * index / count : 0;
  const size_t end = enough ? cores.size() * (index + 1) / count : cores.size();

  std::vector<int> part;
  size_t at = 0;
  for (const auto& [where, cpus] : cores) {
    if (at >= begin && at < end)
      part.insert(part.end(), cpus.begin(), cpus.end());
    ++at;
  }
  std::ranges::sort(part);
  return part;
}

size_t cores_of(const Machine& machine, const std::vector<int>& cpus) {
  std::set<std::pair<int, int>> cores;
  for (const auto& cpu : machine.cpus)
    if (contains(cpus, cpu.id)) cores.insert({cpu.package, cpu.core});
  return cores.size();
}

// The cores nearest to a GPU that may be used.
std::vector<Cpu> region_of(const std::vector<Cpu>& permitted,
                           const DeviceLocation* gpu) {
  if (gpu == nullptr) return permitted;
  std::vector<Cpu> near;
  if (gpu->numa >= 0)
    std::ranges::copy_if(permitted, std::back_inserter(near),
                         [&](const Cpu& cpu) { return cpu.numa == gpu->numa; });
  if (near.empty() && gpu->package >= 0)
    std::ranges::copy_if(
        permitted, std::back_inserter(near),
        [&](const Cpu& cpu) { return cpu.package == gpu->package; });
  return near.empty() ? permitted : near;
}

std::vector<int> ids_of(const std::vector<Cpu>& cpus) {
  std::vector<int> ids;
  for (const auto& cpu : cpus) ids.push_back(cpu.id);
  std::ranges::sort(ids);
  return ids;
}

// The node and socket all of `cpus` are on; -1 where they span several.
DeviceLocation location_of_cpus(const Machine& machine,
                                const std::vector<int>& cpus) {
  std::set<int> nodes, packages;
  for (const auto& cpu : machine.cpus)
    if (contains(cpus, cpu.id)) {
      nodes.insert(cpu.numa);
      packages.insert(cpu.package);
    }
  DeviceLocation location;
  if (nodes.size() == 1) location.numa = *nodes.begin();
  if (packages.size() == 1) location.package = *packages.begin();
  return location;
}

std::string nearest_adapter(const Machine& machine, const DeviceLocation& to) {
  const DeviceLocation* best = nullptr;
  int best_score = -1;
  for (const auto& hca : machine.hcas) {
    const int score = (hca.numa >= 0 && hca.numa == to.numa ? 2 : 0) +
                      (hca.package >= 0 && hca.package == to.package ? 1 : 0);
    if (score > best_score) {
      best = &hca;
      best_score = score;
    }
  }
  return best == nullptr ? "" : best->name;
}

// Says how the launcher bound a rank. `near`: the cores of the GPU's region,
// empty without a GPU.
void assess(Placement& placement, const std::vector<RankAffinity>& ranks,
            size_t rank, const std::vector<int>& near, bool enough_cores) {
  const auto& mine = ranks[rank].cpus;
  if (!near.empty() && !intersects(mine, near)) {
    placement.found = Binding::kFar;
    placement.reason =
        "cores " + cpu_list_text(mine) + " are not on its GPU's socket";
    return;
  }
  for (size_t other = 0; other < ranks.size() && enough_cores; ++other) {
    if (other == rank || !intersects(mine, ranks[other].cpus)) continue;
    placement.found = Binding::kShared;
    placement.reason = "shares cores " + cpu_list_text(mine) +
                       " with local rank " + std::to_string(other);
    return;
  }
  if (!near.empty() && !std::ranges::includes(near, mine)) {
    placement.found = Binding::kWide;
    placement.reason =
        "cores " + cpu_list_text(mine) + " reach past its GPU's socket";
  }
}

// Cores this job may use.
std::vector<Cpu> permitted_cpus(const Machine& machine,
                                const std::vector<RankAffinity>& ranks,
                                bool whole_host) {
  if (whole_host) return machine.cpus;
  std::set<int> given;
  for (const auto& rank : ranks)
    given.insert(rank.cpus.begin(), rank.cpus.end());
  std::vector<Cpu> permitted;
  std::ranges::copy_if(machine.cpus, std::back_inserter(permitted),
                       [&](const Cpu& cpu) { return given.contains(cpu.id); });
  return permitted.empty() ? machine.cpus : permitted;
}

// The region of a rank without a GPU is what it was given; but a single core is
// a launcher's default and not a choice.
std::vector<Cpu> region_of_cpu_rank(const Machine& machine,
                                    const std::vector<Cpu>& permitted,
                                    const RankAffinity& rank, bool whole_host) {
  std::vector<Cpu> region;
  std::ranges::copy_if(
      permitted, std::back_inserter(region),
      [&](const Cpu& cpu) { return contains(rank.cpus, cpu.id); });
  const bool one_core = cores_of(machine, ids_of(region)) == 1;
  return region.empty() || (whole_host && one_core) ? permitted : region;
}

// Ranks of one region, and what is decided for them. `placements` of all ranks.
class RegionPlacement {
 public:
  RegionPlacement(const Machine& machine,
                  const std::vector<RankAffinity>& ranks,
                  std::vector<Cpu> region, std::vector<size_t> members,
                  std::vector<Placement>& placements)
      : machine_(machine),
        ranks_(ranks),
        region_(std::move(region)),
        members_(std::move(members)),
        placements_(placements),
        enough_cores_(members_.size() == 1 || part(0).size() < region_.size()) {
    assert(!members_.empty());
  }

  // What the launcher did stays where it is good.
  void assess_all() {
    const std::vector<int> cpus = ids_of(region_);
    for (size_t m = 0; m < members_.size(); ++m) {
      const size_t r = members_[m];
      const bool has_gpu = machine_.gpu_of(ranks_[r].gpu_uuid) != nullptr;
      assess(placements_[r], ranks_, r, has_gpu ? cpus : std::vector<int>{},
             enough_cores_);
      placements_[r].cpus =
          placements_[r].found == Binding::kGood ? ranks_[r].cpus : part(m);
    }
  }

  // A rank on a single core gets its part, where that is more.
  void widen() {
    for (size_t m = 0; m < members_.size(); ++m) {
      Placement& placement = placements_[members_[m]];
      const auto better = part(m);
      const bool is_narrow = placement.found == Binding::kGood &&
                             cores_of(machine_, placement.cpus) <= 1 &&
                             cores_of(machine_, better) > 1;
      if (!is_narrow) continue;
      placement.found = Binding::kNarrow;
      placement.reason =
          "bound to core " + cpu_list_text(placement.cpus) + " alone";
      placement.cpus = better;
    }
  }

  // A rank that was bound well makes room for one that is moved onto its cores.
  void make_room() {
    if (!enough_cores_) return;
    for (size_t m = 0; m < members_.size(); ++m) {
      Placement& placement = placements_[members_[m]];
      for (const size_t other : members_) {
        const bool collides =
            placement.found == Binding::kGood &&
            placements_[other].found != Binding::kGood &&
            intersects(placement.cpus, placements_[other].cpus);
        if (!collides) continue;
        placement.found = Binding::kShared;
        placement.reason = "cores " + cpu_list_text(placement.cpus) +
                           " are also where local rank " +
                           std::to_string(other) + " belongs";
        placement.cpus = part(m);
      }
    }
  }

 private:
  std::vector<int> part(size_t member) const {
    return part_of(region_, member, members_.size());
  }

  const Machine& machine_;
  const std::vector<RankAffinity>& ranks_;
  std::vector<Cpu> region_;
  std::vector<size_t> members_;  // ranks
  std::vector<Placement>& placements_;
  bool enough_cores_;  // no two share cores
};

}  // namespace

std::vector<Placement> decide_placement(const Machine& machine,
                                        const std::vector<RankAffinity>& ranks,
                                        bool whole_host) {
  const std::vector<Cpu> permitted = permitted_cpus(machine, ranks, whole_host);
  struct Region {
    std::vector<Cpu> cpus;
    std::vector<size_t> members;  // ranks
  };
  std::map<std::vector<int>, Region> regions;  // by the numbers of its CPUs
  for (size_t r = 0; r < ranks.size(); ++r) {
    assert(std::ranges::is_sorted(ranks[r].cpus));
    auto cpus =
        ranks[r].gpu_uuid.empty()
            ? region_of_cpu_rank(machine, permitted, ranks[r], whole_host)
            : region_of(permitted, machine.gpu_of(ranks[r].gpu_uuid));
    Region& region = regions[ids_of(cpus)];
    region.cpus = std::move(cpus);
    region.members.push_back(r);
  }

  std::vector<Placement> placements(ranks.size());
  for (auto& [ids, region] : regions) {
    RegionPlacement placement(machine, ranks, region.cpus, region.members,
                              placements);
    placement.assess_all();
    if (whole_host) placement.widen();
    placement.make_room();
  }

  for (size_t r = 0; r < ranks.size(); ++r) {
    const DeviceLocation cores = location_of_cpus(machine, placements[r].cpus);
    placements[r].numa = cores.numa;
    // The adapter of the rank's GPU (its GPUDirect path), else of its cores.
    const DeviceLocation* gpu = machine.gpu_of(ranks[r].gpu_uuid);
    placements[r].hca = nearest_adapter(machine, gpu != nullptr ? *gpu : cores);
  }
  return placements;
}

}  // namespace chexnet
