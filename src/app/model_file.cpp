// A checkpoint inside a run folder is scored as that run would score it: its
// state.json holds the whole config. A .safetensors file outside of its run
// folder holds the config without paths.
#include "model_file.hpp"

#include <CLI/CLI.hpp>
#include <cassert>
#include <optional>
#include <utility>

#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/core/safetensors.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"
#include "chexnet/train/ensemble_file.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/precision.hpp"
#include "chexnet/train/run/train_state.hpp"

namespace chexnet {

CLI::Option* add_model_option(CLI::App& command, std::string& model) {
  return command.add_option("model", model,
                            "run folder (its best checkpoint), checkpoint "
                            "folder, or a model's .safetensors file");
}

Config model_config(const std::filesystem::path& file,
                    const ModelMetadata& metadata,
                    const ModelOverrides& overrides) {
  const auto load = [&](const std::string& origin, const std::string& text) {
    return load_config_text(origin, text, overrides.set, overrides.variables,
                            overrides.last);
  };
  const bool has_own_name = file.filename() == "model.safetensors";
  const auto folder = file.parent_path();
  const auto kept = folder / "state.json";
  if (has_own_name && is_ensemble_folder(folder))
    return load_config({folder / "config.yaml"}, overrides.set,
                       overrides.variables, overrides.last);
  if (has_own_name && std::filesystem::exists(kept)) {
    const auto text = CheckpointStore::read_state(file.parent_path());
    const TrainState state = TrainState::from_json(text, kept.string());
    return load(kept.string(), state.config);
  }
  const Config said = load_config_text(file.string(), metadata.config, {});
  return load(file.string(), config_yaml(without_places(said)));
}

ModelNetworks::ModelNetworks(const std::filesystem::path& file,
                             const Config& config,
                             const ModelMetadata& metadata,
                             const Device& device, Communicator& comm) {
  const Strings& findings =
      config.data.findings.empty() ? metadata.findings : config.data.findings;
  std::optional<SafetensorsFile> model;
  if (comm.rank() == 0) {
    const StorageWait reading(config.launch.timeout_s, "reading the model");
    model.emplace(file);
  }  // a GPU that hangs is none of storage
  for (size_t m = 0; m < metadata.members; ++m) {
    Network& network = *networks_.emplace_back(std::make_unique<Network>(
        network_spec(config.model.arch), static_cast<int64_t>(findings.size()),
        network_options(config, device, comm)));
    if (model)
      take_network(
          metadata.members > 1 ? model->part(member_prefix(m)) : *model, file,
          config, findings, network.parameters());
    broadcast_from_rank_0(comm, network.parameters(), nullptr);
  }
}

// The classifier gets the rows of an identity matrix below its own.
int64_t ModelNetworks::add_features() {
  assert(networks_.size() == 1);
  const Network& plain = *networks_.front();
  const Parameters& from = plain.parameters();
  const int64_t findings = plain.classifier_weight().size(0),
                features = plain.classifier_weight().size(1);
  auto wide = std::make_unique<Network>(plain.spec(), findings + features,
                                        plain.options());
  Parameters& to = wide->parameters();
  for (size_t i = 0; i < from.list().size(); ++i) {
    const Parameter &own = from.list()[i], &more = to.list()[i];
    const at::Tensor values = from.part(from.flat_values(), own),
                     target = to.part(to.flat_values(), more);
    if (!own.is_head()) {
      target.copy_(values);
      continue;
    }
    target.zero_();
    target.narrow(0, 0, findings).copy_(values);
    if (own.is_weight) target.narrow(0, findings, features).fill_diagonal_(1);
  }
  to.flat_running().copy_(from.flat_running());
  to.refresh_compute_copies();
  networks_.front() = std::move(wide);
  return features;
}

RunContext ModelNetworks::context(const Config& config, Communicator& comm,
                                  const Device& device, const Dataset& dataset,
                                  const LossWeights& weights) const {
  RunContext run{config, comm, device, dataset, *networks_.front(), weights};
  for (size_t m = 1; m < networks_.size(); ++m)
    run.others.push_back(networks_[m].get());
  return run;
}

}  // namespace chexnet
