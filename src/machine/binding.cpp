#include "chexnet/machine/binding.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "chexnet/machine/affinity.hpp"

namespace chexnet {
namespace {

bool contains(const std::vector<int>& cpus, int cpu) {
  return std::ranges::binary_search(cpus, cpu);
}
bool intersects(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::any_of(a, [&](int cpu) { return contains(b, cpu); });
}

// Part `index` of `count` of a region, in whole cores; the whole region when it has fewer cores
// than takers.
std::vector<int> fraction_of(const std::vector<Cpu>& region, std::size_t index, std::size_t count) {
  std::map<std::tuple<int, int, int>, std::vector<int>> cores;  // in order of socket and node
  for (const auto& cpu : region) cores[{cpu.package, cpu.numa, cpu.core}].push_back(cpu.id);
  std::vector<int> share;
  const bool enough = cores.size() >= count;
  std::size_t at = 0;
  for (const auto& [place, cpus] : cores) {
    if (!enough || (at >= cores.size() * index / count && at < cores.size() * (index + 1) / count))
      share.insert(share.end(), cpus.begin(), cpus.end());
    ++at;
  }
  std::ranges::sort(share);
  return share;
}

std::size_t cores_of(const Machine& machine, const std::vector<int>& cpus) {
  std::set<std::pair<int, int>> cores;
  for (const auto& cpu : machine.cpus)
    if (contains(cpus, cpu.id)) cores.insert({cpu.package, cpu.core});
  return cores.size();
}

// The cores nearest to a GPU that may be used.
std::vector<Cpu> region_of(const std::vector<Cpu>& permitted, const DeviceLocation* gpu) {
  if (gpu == nullptr) return permitted;
  std::vector<Cpu> near;
  if (gpu->numa >= 0)
    std::ranges::copy_if(permitted, std::back_inserter(near),
                         [&](const Cpu& cpu) { return cpu.numa == gpu->numa; });
  if (near.empty() && gpu->package >= 0)
    std::ranges::copy_if(permitted, std::back_inserter(near),
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
DeviceLocation place_of_cpus(const Machine& machine, const std::vector<int>& cpus) {
  std::set<int> nodes, packages;
  for (const auto& cpu : machine.cpus)
    if (contains(cpus, cpu.id)) {
      nodes.insert(cpu.numa);
      packages.insert(cpu.package);
    }
  DeviceLocation place;
  if (nodes.size() == 1) place.numa = *nodes.begin();
  if (packages.size() == 1) place.package = *packages.begin();
  return place;
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

// Judges what the launcher did. `near`: the cores of the GPU's region, empty without a GPU.
void assess(Placement& placement, const std::vector<RankAffinity>& ranks, std::size_t rank,
            const std::vector<int>& near, bool enough_cores) {
  const auto& mine = ranks[rank].cpus;
  if (!near.empty() && !intersects(mine, near)) {
    placement.found = Binding::kFar;
    placement.reason = "cores " + cpu_list_text(mine) + " are not on its GPU's socket";
    return;
  }
  for (std::size_t other = 0; other < ranks.size() && enough_cores; ++other) {
    if (other == rank || !intersects(mine, ranks[other].cpus)) continue;
    placement.found = Binding::kShared;
    placement.reason =
        "shares cores " + cpu_list_text(mine) + " with local rank " + std::to_string(other);
    return;
  }
  if (!near.empty() && !std::ranges::includes(near, mine)) {
    placement.found = Binding::kWide;
    placement.reason = "cores " + cpu_list_text(mine) + " reach past its GPU's socket";
  }
}

}  // namespace

std::vector<Placement> decide_placement(const Machine& machine,
                                        const std::vector<RankAffinity>& ranks, bool whole_host) {
  std::set<int> given;
  for (const auto& rank : ranks) given.insert(rank.cpus.begin(), rank.cpus.end());
  std::vector<Cpu> permitted;
  std::ranges::copy_if(machine.cpus, std::back_inserter(permitted),
                       [&](const Cpu& cpu) { return whole_host || given.contains(cpu.id); });
  if (permitted.empty()) permitted = machine.cpus;

  // Ranks of equal region share it. A CPU rank's region is what it was given, so that a launcher's
  // good work stays; but a single core is a launcher's default and not a choice.
  std::vector<std::vector<Cpu>> regions;
  std::map<std::vector<int>, std::vector<std::size_t>> takers;  // region -> ranks
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::vector<Cpu> region;
    if (!ranks[r].gpu_uuid.empty()) {
      region = region_of(permitted, machine.gpu_of(ranks[r].gpu_uuid));
    } else {
      std::ranges::copy_if(permitted, std::back_inserter(region),
                           [&](const Cpu& cpu) { return contains(ranks[r].cpus, cpu.id); });
      if (region.empty() || (whole_host && cores_of(machine, ids_of(region)) == 1))
        region = permitted;
    }
    takers[ids_of(region)].push_back(r);
    regions.push_back(std::move(region));
  }

  std::vector<Placement> placements(ranks.size());
  for (const auto& [region, members] : takers) {
    const auto share = [&, &region = region, &members = members](std::size_t member) {
      return fraction_of(regions[members[member]], member, members.size());
    };
    const bool enough_cores = members.size() == 1 || share(0).size() < region.size();
    for (std::size_t m = 0; m < members.size(); ++m) {
      const std::size_t r = members[m];
      const bool has_gpu = machine.gpu_of(ranks[r].gpu_uuid) != nullptr;
      assess(placements[r], ranks, r, has_gpu ? region : std::vector<int>{}, enough_cores);
      placements[r].cpus = placements[r].found == Binding::kGood ? ranks[r].cpus : share(m);
    }
    for (std::size_t m = 0; m < members.size() && whole_host; ++m) {
      Placement& placement = placements[members[m]];
      const auto better = share(m);
      if (placement.found != Binding::kGood || cores_of(machine, placement.cpus) > 1 ||
          cores_of(machine, better) <= 1)
        continue;
      placement.found = Binding::kNarrow;
      placement.reason = "bound to core " + cpu_list_text(placement.cpus) + " alone";
      placement.cpus = better;
    }
    // A rank that was well seated makes room for one that is moved onto its cores.
    for (std::size_t m = 0; m < members.size() && enough_cores; ++m) {
      Placement& placement = placements[members[m]];
      for (const std::size_t other : members) {
        if (placement.found != Binding::kGood || placements[other].found == Binding::kGood ||
            !intersects(placement.cpus, placements[other].cpus))
          continue;
        placement.found = Binding::kShared;
        placement.reason = "cores " + cpu_list_text(placement.cpus) +
                           " are also where local rank " + std::to_string(other) + " belongs";
        placement.cpus = share(m);
      }
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const DeviceLocation cores = place_of_cpus(machine, placements[r].cpus);
    placements[r].numa = cores.numa;
    // The adapter of the rank's GPU (its GPUDirect path), else of its cores.
    const DeviceLocation* gpu = machine.gpu_of(ranks[r].gpu_uuid);
    placements[r].hca = nearest_adapter(machine, gpu != nullptr ? *gpu : cores);
  }
  return placements;
}

}  // namespace chexnet
