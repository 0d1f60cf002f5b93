// What a model file says of itself.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/eval/decision_rules.hpp"
#include "chexnet/eval/prevalence.hpp"
#include "chexnet/train/run/dataset.hpp"

namespace chexnet {

// The JSON text in model.safetensors' metadata: arch, findings in the order of
// the outputs, preprocessing, config, splits, versions.
std::string model_metadata(const Config& config, const Dataset& dataset);
// Of a network that others trained, nobody knows on which table and splits.
std::string model_metadata(const Config& config,
                           const std::vector<std::string>& findings);

// Copies the model file `from` to `into` with `rules` for its weights, which
// replace those that it had. It notes with them what they are for.
void write_decision_rules(const std::filesystem::path& from,
                          const std::filesystem::path& into,
                          DecisionRules rules);

// What a model file says of itself, enough to score with it wherever it is.
// CheckpointError when it is damaged or was not written by this program, or
// when its decision rules are of another model (other weights, other findings
// or another order of them, other preprocessing) or were edited. Warns of
// rules without the SHA-256 that would tell.
struct ModelMetadata {
  std::string config;                         // YAML, without paths
  std::vector<std::string> findings;          // in the order of the outputs
  std::string manifest_sha256;                // of the table; empty: not known
  std::map<std::string, std::string> splits;  // name -> SHA-256
  // Of the training images; empty: not known, or several (an ensemble).
  std::vector<LabeledImages> trained_on;
  std::optional<DecisionRules> rules;  // none: never scored on validation
  // Networks in the file: those of an ensemble (train/ensemble.hpp), or 1.
  size_t members = 1;
  bool out_of_fold = false;  // its rules are (kChosenOutOfFold)
};
ModelMetadata read_model_metadata(const std::filesystem::path& file);

}  // namespace chexnet
