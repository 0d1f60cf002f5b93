// A model's weights as safetensors with the names and shapes that another
// library's load_state_dict takes. All of these libraries use torchvision's
// names.
#pragma once

#include <filesystem>

#include "chexnet/core/safetensors.hpp"
#include "chexnet/model/formats/model_description.hpp"

namespace chexnet {

// TorchXRayVision's networks begin with a convolution of one channel
// (gray_stem.hpp).
enum class WeightsFor { kTorchvision, kTorchxrayvision };

// In fp32, num_batches_tracked as int64. `file` is the model that
// `model` describes; its metadata goes along, so model.weights and `predict`
// read the new file too. CheckpointError: nothing can be written at `path`, or
// `file` is not one of this program.
void write_named_weights(const std::filesystem::path& path,
                         const SafetensorsFile& file,
                         const ModelDescription& model, WeightsFor library);

}  // namespace chexnet
