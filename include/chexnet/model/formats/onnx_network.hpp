// DenseNets and ResNets in the format of ONNX, for inference. Layers carry
// torchvision's names, and so do their weights.
//
// BatchNorm stays a separate layer. In a DenseNet most of them stand between a
// concatenation and a ReLU, where no convolution can absorb them; the weights
// in the file are the checkpoint's, number for number; and the runtimes fold
// what they can when they load it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chexnet/model/engine/network_spec.hpp"
#include "chexnet/model/formats/float_tensors.hpp"

namespace chexnet {

enum class ModelInput {
  kGray,        // uint8 [N,1,S,S]: scaling and three channels are in the model
  kFloat,       // float [N,3,S,S], normalized by the caller
  kOneChannel,  // float [N,1,S,S], of weights for TorchXRayVision alone
};
enum class ModelOutput { kProbabilities, kLogits };

inline constexpr const char* kModelInputName = "image";
const char* output_name(ModelOutput output);

struct OnnxOptions {
  ModelInput input = ModelInput::kGray;
  ModelOutput output = ModelOutput::kProbabilities;
  int64_t size = 224;             // S, pixels
  std::vector<double> mean, std;  // [3]
  std::map<std::string, std::string> metadata;
};

// The file's bytes; not for kOneChannel. `members`: the weights of one network,
// or of the members of an ensemble, whose logits are their mean.
// CheckpointError: a weight of the network is absent or of another shape.
std::string onnx_network(const NetworkSpec& spec,
                         const std::vector<FloatTensors>& members,
                         const OnnxOptions& options);

}  // namespace chexnet
