// The small files beside an exported network: its inputs and outputs, how a
// server loads it, and how to check that it computes the same there. All JSON
// and config.pbtxt are described in docs/export.md.
#pragma once

#include <string>
#include <vector>

#include "chexnet/model/formats/model_description.hpp"
#include "chexnet/model/formats/onnx_network.hpp"

namespace chexnet {

// A drawing and the network's outputs for it.
struct TestVector {
  std::string image;  // file: the picture as it would come
  std::string input;  // file: the pixels that the network sees of it
  std::vector<double> probabilities;  // [K]
};

// How the file with the network is called and used.
struct ExportedFile {
  std::string name;
  ModelInput input = ModelInput::kGray;
  ModelOutput output = ModelOutput::kProbabilities;
};

std::string preprocessing_json(const ModelDescription& model,
                               const ExportedFile& file);
std::string labels_json(const ModelDescription& model,
                        const ExportedFile& file);
// A line for each finding, for Triton's classification extension.
std::string labels_text(const ModelDescription& model);
std::string test_vectors_json(const ModelDescription& model,
                              const std::vector<TestVector>& vectors);
// Triton's ModelConfig (model_config.proto) as text, without a name: the
// server then takes the folder's.
std::string triton_config(const ModelDescription& model,
                          const ExportedFile& file);

}  // namespace chexnet
