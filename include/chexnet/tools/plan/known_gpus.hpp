// GPUs whose rate is known without a measurement, for `bench scaling`.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace chexnet {

struct KnownGpu {
  std::string_view name;
  double memory_gb_per_s;  // as the vendor states it
  double dense_tflops;     // 16-bit tensor cores, without sparsity; the same
  std::string_view source;
  // A step of DenseNet-121 at 224 px in 16 bits: computed, not measured.
  double images_per_s;
};

std::span<const KnownGpu> known_gpus();
// ConfigError with the known names where `name` is none of them.
const KnownGpu& known_gpu(const std::string& name);
// "T4, V100, A30, …"
std::string known_gpu_names();

}  // namespace chexnet
