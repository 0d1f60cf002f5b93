// A network that others trained, as a model file of ours: the inverse of
// export.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/model/weights.hpp"

namespace chexnet {

// Stands in a list of outputs for one that is left out.
inline constexpr const char* kLeftOut = "-";

using ConfigOfNetwork = std::function<Config(Architecture)>;

struct ImportedNetwork {
  Config config;                      // with its architecture
  std::vector<std::string> findings;  // in the order of the outputs
  LoadReport report;
};

// Writes `into`: the weights of a safetensors file (model/weights.hpp says of
// whose) in fp32, with the input that `config_of` describes for the network,
// which the tensors show. `outputs`: the names of the classifier's outputs, in
// their order; empty: as the file's metadata says. CheckpointError: it is no
// such network, or a model of ours already. ConfigError: not as many outputs,
// or a finding twice.
ImportedNetwork import_network(const std::filesystem::path& weights,
                               const std::vector<std::string>& outputs,
                               const ConfigOfNetwork& config_of,
                               const std::filesystem::path& into);

}  // namespace chexnet
