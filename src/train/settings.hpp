// The settings of a run for people, told before its first step.
#pragma once

#include <string>

#include "chexnet/core/text_table.hpp"
#include "chexnet/train/run/train_state.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

// The head of the log and of the report. `engine`: what computes.
Rows settings_table(const TrainingContext& run, const TrainState& state,
                    const std::string& engine);

}  // namespace chexnet
