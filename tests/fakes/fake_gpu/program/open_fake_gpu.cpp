// The one object in which chexnet-train-fake differs from chexnet-train: its
// GPUs are those of the fake library, and launch.device calls them "fake".
#include <cstdlib>

#include "chexnet/comm/cuda_library.hpp"
#include "config/option_table.hpp"

namespace chexnet {

const char* CudaLibrary::file_name() { return "libchexnet_fakegpu.so"; }

int CudaLibrary::visible_gpus() {
  const char* text = std::getenv("FAKE_CUDA_DEVICES");
  return text != nullptr ? std::atoi(text) : 2;
}

const GpuBuild& CudaLibrary::build() {
  static const GpuBuild build{"fake", 13, {"sm_90"}};
  return build;
}

GpuProblem CudaLibrary::problem_of_host() { return {}; }

FieldRef field_ref(std::optional<DeviceKind>& device) {
  return NamedValue{{"auto", "cpu", "fake"},
                    [&device] {
                      return device == DeviceKind::kCuda
                                 ? std::string("fake")
                                 : std::string(choice_name(device));
                    },
                    [&device](const std::string& text) {
                      if (text == "auto") device = std::nullopt;
                      if (text == "cpu") device = DeviceKind::kCpu;
                      if (text == "fake") device = DeviceKind::kCuda;
                      return text == "auto" || text == "cpu" || text == "fake";
                    }};
}

}  // namespace chexnet
