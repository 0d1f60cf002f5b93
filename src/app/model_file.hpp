// What commands that score with a model share: its config, and its weights on
// every rank.
#pragma once

#include <filesystem>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/network_state.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace chexnet {

// The model to take, by its place.
CLI::Option* add_model_option(CLI::App& command, std::string& model);

// What the user of a model says otherwise: as load_config_text().
struct ModelOverrides {
  Strings set = {};  // key=value
  Strings* variables = nullptr;
  ConfigOverride last = nullptr;
};
// The config of the run that a model is in, else what the model file itself
// says; then the overrides. ConfigError.
Config model_config(const std::filesystem::path& file, const ModelCard& card,
                    const ModelOverrides& overrides);

// Collective: rank 0 reads, all have the weights. CheckpointError on rank 0 as
// read_network().
void read_shared_network(const std::filesystem::path& file,
                         const Config& config, const ModelCard& card,
                         Communicator& comm, Network& network);

}  // namespace chexnet
