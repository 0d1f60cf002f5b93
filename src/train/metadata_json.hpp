// The JSON in a model file's metadata, for those who compare it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/core/safetensors.hpp"
#include "chexnet/eval/decision_rules.hpp"

namespace chexnet {

// Of an ensemble: SHA-256 of its members' model files, in order.
inline constexpr const char* kMembers = "members";
inline constexpr const char* kOutOfFold = "out_of_fold";  // the same

nlohmann::json preprocessing_json(const DataConfig& data);

// Of the model file at `path`. CheckpointError when it has none.
nlohmann::json description_of(const SafetensorsFile& file,
                              const std::filesystem::path& path);
// Null where there is no such field.
nlohmann::json field(const nlohmann::json& description, const char* name);
// Adds to the metadata of a model file of these arrays: rules, and what they
// are for.
void add_rules(DecisionRules rules, const std::vector<NamedArray>& arrays,
               const nlohmann::json& description, Metadata& metadata);

}  // namespace chexnet
