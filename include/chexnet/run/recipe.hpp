// What a config means for training that its keys do not show, in words for
// settings and log.
#pragma once

#include <cstdint>
#include <string>

#include "chexnet/config/config.hpp"
#include "chexnet/run/run_decisions.hpp"

namespace chexnet {

// Over how many images a BatchNorm takes its mean and variance in training.
int64_t images_per_batchnorm(const Config& config, int64_t batch, int ranks);
std::string batchnorm_text(const Config& config, int64_t batch, int ranks);
std::string loss_text(const TrainConfig& config);

// Logs a warning where a BatchNorm sees few images, and where the program chose
// the batch itself.
void warn_of_recipe(const Config& config, const RunDecisions& decisions,
                    int ranks);

// The same after a resume on `now` ranks of a run that had `before`.
void warn_of_other_ranks(const Config& config, int64_t batch, int before,
                         int now);

}  // namespace chexnet
