// Network weights as safetensors with torchvision's names, to and from Parameters.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/core/safetensors.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

struct LoadReport {
  std::vector<std::string> missing;  // of the network, not in the file: kept as they were
  std::vector<std::string> extra;    // of the file, not of the network: ignored
  std::vector<std::string>
      head;                  // classifier tensors of another number of findings: kept as they were
  std::string text() const;  // for the settings table; empty when everything fitted
};

// Copies by name. CheckpointError: a backbone tensor is missing or of another shape.
// A classifier of another size is reported, never cut or padded.
LoadReport load_weights(const SafetensorsFile& file, const std::string& origin,
                        Parameters& parameters);

// Writes parameters, running statistics and num_batches_tracked (= steps), all in fp32 (fp64
// networks: fp64).
void save_weights(const std::filesystem::path& path, const Parameters& parameters,
                  std::int64_t steps, const Metadata& metadata);

}  // namespace chexnet
