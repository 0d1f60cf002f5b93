// A model's numbers by torchvision's names, in fp32 and on the host: the source
// of other people's formats.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chexnet/core/safetensors.hpp"

namespace chexnet {

struct FloatTensor {
  std::vector<int64_t> shape;  // row-major
  std::vector<float> values;
};
using FloatTensors = std::map<std::string, FloatTensor>;

// Parameters and running statistics of a file that this program wrote; fp64 is
// rounded. num_batches_tracked, which inference does not need, is left out.
// CheckpointError naming `origin`: another type of numbers.
FloatTensors float_tensors(const SafetensorsFile& file,
                           const std::string& origin);

}  // namespace chexnet
