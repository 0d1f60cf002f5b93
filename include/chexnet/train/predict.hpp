// Scores of a split, each image once on any number of ranks. Every forward pass
// has the same shape (the tail is padded and dropped), so a score does not
// depend on which rank computed it.
#pragma once

#include <functional>
#include <optional>

#include "chexnet/data/split.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

struct SplitPrediction {
  Predictions predictions;  // complete on every rank, in the split's order
  double loss = 0;  // weighted binary cross-entropy, mean over labeled entries
};

// Collective. A damaged image follows data.corrupt and data.corrupt_limit:
// DataError on all ranks, or not scored: its labels stay, its probabilities are
// NaN, and no figure counts it. NumericError on all ranks when a logit is not
// finite. `stop` is asked on every rank before each batch; where any rank says
// yes, all return nothing.
std::optional<SplitPrediction> predict_split(const RunContext& run,
                                             const Split& split,
                                             const std::function<bool()>& stop);

}  // namespace chexnet
