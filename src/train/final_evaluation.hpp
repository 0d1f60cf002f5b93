// The end of a run: eval.splits scored with the weights of its best checkpoint
// (without one, the last), predictions_<split>.csv and `final` events written.
// Collective.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "chexnet/report/scores_output.hpp"
#include "training_loop.hpp"

namespace chexnet {

struct FinalScores {
  bool best = false;  // the weights are the best checkpoint's, else the last
  int64_t step = 0;   // that they are of
  std::vector<SplitScores> splits;
};

// `state` of the last step. Nothing when a stop was requested.
std::optional<FinalScores> final_evaluation(const TrainingLoop::Parts& parts,
                                            const TrainState& state);

}  // namespace chexnet
