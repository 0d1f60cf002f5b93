// A checkpoint inside a run folder is scored as that run would score it: its
// state.json holds the whole config. A .safetensors file that was carried
// elsewhere holds the config without places.
#include "model_file.hpp"

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/core/safetensors.hpp"
#include "chexnet/train/checkpoint/store.hpp"
#include "chexnet/train/run/train_state.hpp"

namespace chexnet {

CLI::Option* add_model_option(CLI::App& command, std::string& model) {
  return command.add_option("model", model,
                            "run folder (its best checkpoint), checkpoint "
                            "folder, or a model's .safetensors file");
}

Config model_config(const std::filesystem::path& file, const ModelCard& card,
                    const ModelOverrides& overrides) {
  const auto load = [&](const std::string& origin, const std::string& text) {
    return load_config_text(origin, text, overrides.set, overrides.variables,
                            overrides.last);
  };
  const auto kept = file.parent_path() / "state.json";
  const bool in_run =
      file.filename() == "model.safetensors" && std::filesystem::exists(kept);
  if (in_run) {
    const auto text = CheckpointStore::read_state(file.parent_path());
    const TrainState state = TrainState::from_json(text, kept.string());
    return load(kept.string(), state.config);
  }
  const Config said = load_config_text(file.string(), card.config, {});
  return load(file.string(), config_yaml(without_places(said)));
}

void read_shared_network(const std::filesystem::path& file,
                         const Config& config, const ModelCard& card,
                         Communicator& comm, Network& network) {
  const Strings& findings =
      config.data.findings.empty() ? card.findings : config.data.findings;
  if (comm.rank() == 0) {
    std::optional<StorageWait> reading(std::in_place, config.launch.timeout_s,
                                       "reading the model");
    const SafetensorsFile model(file);
    reading.reset();  // a GPU that hangs is none of storage
    take_network(model, file, config, findings, network.parameters());
  }
  broadcast_from_rank_0(comm, network.parameters(), nullptr);
}

}  // namespace chexnet
