// What a config means for training that its keys do not show, in words for
// settings and log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chexnet/config/config.hpp"
#include "chexnet/train/run/run_decisions.hpp"
#include "chexnet/train/run/train_state.hpp"

namespace chexnet {

// Over how many images a BatchNorm takes its mean and variance in training.
int64_t images_per_batchnorm(const Config& config, int64_t batch, int ranks);
std::string batchnorm_text(const Config& config, int64_t batch, int ranks);
// "frozen until block2 for 3 epochs"; empty where all is trained.
std::string frozen_text(const ModelConfig& model);
std::string loss_text(const TrainConfig& config);
// Whether training so moves scores away from prevalence, so that they are no
// probabilities.
bool moves_scores(const TrainConfig& config);

// Logs a warning where a BatchNorm sees few images, where the program chose the
// batch itself, and where that is larger than the training split.
void warn_of_recipe(const Config& config, const RunDecisions& decisions,
                    int ranks, int64_t train_images);

// Equal where two configs ask for the same run: the config's text without names
// and paths, with the learning rate that is reached, the precision of a CPU,
// and without what the crop, the optimizer and schedule, or one rank, do not
// read.
std::string recipe_text(Config config);

// Over how many images a BatchNorm normalizes with the ranks and micro-batches
// of a start and of the resume after it; empty where over as many.
struct BatchNormChange {
  int64_t before, now;
};
std::optional<BatchNormChange> batchnorm_change(const Config& config,
                                                int64_t batch,
                                                const SummationOrder& before,
                                                const SummationOrder& now);
// What a resume with other sums does, in words.
std::string resume_effect_text(const std::optional<BatchNormChange>& batchnorm);

}  // namespace chexnet
