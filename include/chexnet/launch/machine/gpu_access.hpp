// Whether this process can compute on the GPUs of its host, and if not, why:
// decided before anything large is loaded, from what bus, batch job and driver
// say. Pure decisions, so that machines not at hand can be checked in tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/launch/machine/cuda_driver.hpp"

namespace chexnet {

// The GPUs that this build supports.
struct GpuBuild {
  std::string variant;  // cuda13 or cuda12
  int cuda_major = 0;   // of its CUDA runtime; 0: built without CUDA
  std::vector<std::string> architectures;  // "sm_75", "compute_120" (PTX)
};

struct GpuFacts {
  int on_bus = 0;  // NVIDIA's GPUs that PCI shows, whoever may use them
  int of_job = 0;  // that the batch system gave to this job here; 0 not known
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  CudaDriver driver;
};

struct GpuProblem {
  std::string what, remedy;  // both empty: there is none
  bool empty() const { return what.empty(); }
  // As an error says it.
  std::string text() const { return what + ". Hint: " + remedy; }
};

// Where a remedy may end.
inline constexpr const char* kOrOnCpu = "; launch.device=cpu trains on the CPU";

// 13020, as CUDA's libraries write it: "13.2". Inline, for the CUDA library
// too.
inline std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

// Whether the build has code for a GPU of this compute capability: of its own
// generation and not newer, or PTX, which the driver translates.
bool has_code_for(const GpuBuild& build, int major, int minor);

// Why GPUs that are here, or should be, cannot be used. Empty where they can,
// and where there are none.
GpuProblem gpu_problem(const GpuFacts& facts, const GpuBuild& build);

}  // namespace chexnet
