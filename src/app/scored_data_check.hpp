// The checks of `evaluate` before it scores with a model: may figures be taken
// from these images and labels?
#pragma once

#include <filesystem>
#include <string>

#include "chexnet/config/config.hpp"
#include "chexnet/train/model_metadata.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/training_overlap.hpp"

namespace chexnet {

struct ScoredData {
  const TestSet& set;
  std::string split;  // empty: all rows of tables
};

// Rank 0. DataError: a validation or test split has patients that the model was
// trained on, unless data.allow_patient_leak accepts it. Warnings: the same for
// rows of tables; another table than the model's; a split that the model does
// not know and that cannot be checked, because the model lies outside of its
// run.
TrainingOverlap check_scored_data(const ScoredData& data, const Config& config,
                                  const ModelMetadata& metadata,
                                  const std::filesystem::path& model);

// A warning where thresholds come from a table that is none of the run's own:
// those that fit another model's scores are wrong for this one's, and a table
// does not tell whose it is.
void warn_of_another_models_table(const std::string& table,
                                  const std::filesystem::path& model);

// The model's own; null, and a line says why, where they were chosen on the
// very images of `set`, on some of them, or of scores with other settings.
const DecisionRules* rules_for(const TestSet& set,
                               const TrainingOverlap& overlap,
                               const Config& config,
                               const ModelMetadata& metadata);
// Null without rules, or where they are for scores with other settings: then a
// warning says so.
const DecisionRules* rules_of_scores(const ModelMetadata& metadata,
                                     const EvalConfig& config);

}  // namespace chexnet
