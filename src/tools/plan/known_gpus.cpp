// Rates by a roofline over the operators of a step, batch 256: each takes as
// long as its bytes at 90 % of the memory's bandwidth or its sums at 72 % of
// the tensor cores' rate, whichever is longer, and a step reaches 82 % of the
// whole. An image moves 656 MB and takes 17 GFLOP, so memory decides; caches
// are left out. (The V100 reaches 92 % of its bandwidth.)
#include "chexnet/tools/plan/known_gpus.hpp"

#include <array>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

constexpr std::array<KnownGpu, 10> kGpus = {{
    {"T4", 320, 65, "NVIDIA T4 data sheet, 2019", 350},
    {"V100", 900, 125, "NVIDIA V100 data sheet, 2020, SXM2", 970},
    {"A30", 933, 165, "NVIDIA A30 data sheet, 2021", 1010},
    {"A40", 696, 149.7, "NVIDIA A40 data sheet, 2020", 770},
    {"A100-40GB", 1555, 312, "NVIDIA A100 data sheet, 2020", 1710},
    {"A100-80GB", 2039, 312, "NVIDIA A100 data sheet, 2021, SXM", 2190},
    {"L4", 300, 121, "NVIDIA L4 data sheet, 2023", 340},
    {"L40S", 864, 362, "NVIDIA L40S data sheet, 2023", 970},
    {"H100", 3350, 989, "NVIDIA H100 data sheet, 2023, SXM", 3770},
    {"H200", 4800, 989, "NVIDIA H200 data sheet, 2024, SXM", 5300},
}};

}  // namespace

std::span<const KnownGpu> known_gpus() { return kGpus; }

const KnownGpu& known_gpu(const std::string& name) {
  for (const auto& gpu : kGpus)
    if (name == gpu.name) return gpu;
  throw ConfigError(
      "[bench] --rate {} is no number, no file and no known GPU. Hint: {}; or "
      "images/s of `bench step` on yours",
      name, known_gpu_names());
}

std::string known_gpu_names() {
  std::string text;
  for (const auto& gpu : kGpus)
    text += (text.empty() ? "" : ", ") + std::string(gpu.name);
  return text;
}

}  // namespace chexnet
