// What a model file says of itself (metadata "chexnet" of its safetensors), as
// far as software that uses the network elsewhere must know it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/core/safetensors.hpp"

namespace chexnet {

struct ModelDescription {
  std::string text;  // the whole JSON
  std::string arch;
  std::vector<std::string> findings;
  int64_t resize = 0, crop = 0, crop_begin = 0;  // pixels, of evaluation
  std::string resize_kind, jpeg;
  std::vector<double> mean, std;  // [3]
};

// CheckpointError naming `origin`: the file was not written by this program, or
// its description is damaged.
ModelDescription model_description(const SafetensorsFile& file,
                                   const std::string& origin);

}  // namespace chexnet
