// Shared by commands that score with a model: its config, and its weights on
// every rank.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/model_metadata.hpp"
#include "chexnet/train/run_context.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace chexnet {

// The path of the model to take.
CLI::Option* add_model_option(CLI::App& command, std::string& model);

// The user's overrides of a model's config: as load_config_text().
struct ModelOverrides {
  Strings set = {};  // key=value
  Strings* variables = nullptr;
  ConfigOverride last = nullptr;
};
// The config of the run that a model is in, else the model file's own; then the
// overrides. ConfigError.
Config model_config(const std::filesystem::path& file,
                    const ModelMetadata& metadata,
                    const ModelOverrides& overrides);

// The network of a model file, or the members of an ensemble.
class ModelNetworks {
 public:
  // Collective: rank 0 reads, all have the weights. CheckpointError on rank 0
  // as read_network(). `device` outlives it.
  ModelNetworks(const std::filesystem::path& file, const Config& config,
                const ModelMetadata& metadata, const Device& device,
                Communicator& comm);
  // Gives the network, which must be alone, an output more for each feature:
  // the means of its last map, which its classifier works on. So many are they.
  int64_t add_features();
  // Scores of `dataset`; all that is handed on outlives the context, and so
  // does this.
  RunContext context(const Config& config, Communicator& comm,
                     const Device& device, const Dataset& dataset,
                     const LossWeights& weights) const;

 private:
  std::vector<std::unique_ptr<Network>> networks_;
};

}  // namespace chexnet
