// The end of a run: eval.splits scored with the weights of its best checkpoint
// (without one, the last), predictions_<split>.csv and `final` events written.
// Collective.
#pragma once

#include <optional>
#include <vector>

#include "chexnet/report/scores_output.hpp"
#include "chexnet/train/training_loop.hpp"

namespace chexnet {

// `state` of the last step. Nothing when a stop was asked for.
std::optional<std::vector<SplitScores>> final_evaluation(
    const TrainingLoop::Parts& parts, const TrainState& state);

}  // namespace chexnet
