// A split's predictions, complete on every rank.
#pragma once

#include <functional>
#include <optional>

#include "chexnet/data/split.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

struct SplitPrediction {
  Predictions predictions;  // in the split's order
  double loss = 0;  // weighted binary cross-entropy, mean over labeled entries
};

// Collective; errors and `stop` as score_images(). Of an image that is not
// scored the labels stay, its probabilities are NaN, and no figure counts it.
// Nothing on all ranks when it was stopped.
std::optional<SplitPrediction> predict_split(const RunContext& run,
                                             const Split& split,
                                             const std::function<bool()>& stop);

}  // namespace chexnet
