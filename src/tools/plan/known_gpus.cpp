// Memory decides: an image moves 334 MB (tests/fakegpu/traffic_test.sh counts
// each operand of each kernel once) and takes 16 GFLOP. On 2026-11-28 an H200
// computed 5,750 images/s at batch 256 (docs/measurements.md), when an image
// moved 451 MB by the same count: at 54 % of its bandwidth. The rates take this
// fraction for every GPU. None has been measured since.
#include "chexnet/tools/plan/known_gpus.hpp"

#include <array>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

constexpr std::array<KnownGpu, 10> kGpus = {{
    {"T4", 320, 65, "NVIDIA T4 data sheet, 2019", 520},
    {"V100", 900, 125, "NVIDIA V100 data sheet, 2020, SXM2", 1460},
    {"A30", 933, 165, "NVIDIA A30 data sheet, 2021", 1510},
    {"A40", 696, 149.7, "NVIDIA A40 data sheet, 2020", 1130},
    {"A100-40GB", 1555, 312, "NVIDIA A100 data sheet, 2020", 2510},
    {"A100-80GB", 2039, 312, "NVIDIA A100 data sheet, 2021, SXM", 3300},
    {"L4", 300, 121, "NVIDIA L4 data sheet, 2023", 490},
    {"L40S", 864, 362, "NVIDIA L40S data sheet, 2023", 1400},
    {"H100", 3350, 989, "NVIDIA H100 data sheet, 2023, SXM", 5420},
    {"H200", 4800, 989, "NVIDIA H200 data sheet, 2024, SXM", 7760},
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
