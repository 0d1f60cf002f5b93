// The pictures of a report: examples of a split with their heat maps.
#pragma once

#include "chexnet/eval/decision_rules.hpp"
#include "chexnet/eval/predictions.hpp"
#include "training_loop.hpp"

namespace chexnet {

// Collective. Writes RUN/examples/NUMBER.png and, last, examples.json: a list
// of {file, image, finding, kind, probability, threshold}, replacing what was
// there. eval.examples says how many; `rules` are rank 0's. False on all ranks
// when a stop was requested.
bool write_examples(const TrainingLoop::Parts& parts, const Split& split,
                    const Predictions& predictions, const DecisionRules& rules);

}  // namespace chexnet
