// Texts about a GPU's state, whoever read it. Ids of a GPU and of its MIG
// devices are equal when their numbers are, whatever word is before them.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "chexnet/launch/machine/nvml.hpp"

namespace chexnet {

bool GpuState::has_id(const std::string& id) const {
  return same_gpu(uuid, id) ||
         std::ranges::any_of(mig_uuids, [&](const std::string& mig) {
           return same_gpu(mig, id);
         });
}

bool same_gpu(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& id) {
    const bool worded = id.starts_with("GPU-") || id.starts_with("MIG-");
    return std::string_view(id).substr(worded ? 4 : 0);
  };
  return number(a) == number(b);
}

void keep_strangers(std::vector<GpuState>& gpus,
                    const std::vector<unsigned>& own) {
  const auto is_own = [&](const GpuState::Process& process) {
    return std::ranges::find(own, process.pid) != own.end();
  };
  const bool knows_own = std::ranges::any_of(gpus, [&](const GpuState& gpu) {
    return std::ranges::any_of(gpu.processes, is_own);
  });
  for (auto& gpu : gpus) {
    if (!own.empty() && !knows_own) gpu.processes.clear();
    std::erase_if(gpu.processes, is_own);
  }
}

std::string throttle_text(uint64_t reasons) {
  // nvmlClocksThrottleReasons; idle (1) and clocks set by applications (2) are
  // no trouble.
  static constexpr std::array<std::pair<uint64_t, std::string_view>, 6>
      kReasons = {{
          {0x04, "power cap"},
          {0x08, "hardware slowdown"},
          {0x20, "software thermal"},
          {0x40, "hardware thermal"},
          {0x80, "power brake"},
          {0x10, "sync boost"},
      }};
  std::string text;
  for (const auto& [bit, name] : kReasons)
    if ((reasons & bit) != 0)
      text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace chexnet
