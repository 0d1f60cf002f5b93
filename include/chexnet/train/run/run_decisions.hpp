// What a run decides where its config leaves a value to it ("auto"). Made once,
// before the first step; the same on all ranks.
#pragma once

#include <cstdint>

#include "chexnet/config/config.hpp"

namespace chexnet {

struct RunDecisions {
  int64_t batch = 0;  // images per step, all ranks together
  // train.batch is auto, and this start is the run's first
  bool chose_batch = false;
};

// What config.yaml and checkpoints keep: the config with the chosen batch
// instead of "auto", so that a resume keeps it.
Config with_decisions(Config config, const RunDecisions& decisions);

// ConfigError where ranks x train.accumulate do not divide `batch` images.
void check_batch(const TrainConfig& config, int64_t batch, int ranks);

}  // namespace chexnet
