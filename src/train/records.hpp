// What a run puts into its folder when it begins and when it ends; rank 0. The
// loop writes the rest (training_loop.hpp).
#pragma once

#include <memory>

#include "chexnet/core/text_table.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/train/run/train_state.hpp"
#include "chexnet/train/run_context.hpp"
#include "final_evaluation.hpp"
#include "training_loop.hpp"

namespace chexnet {

// From here on the folder holds a run: config, splits, metrics. `settings`:
// settings_table().
std::unique_ptr<MetricsLog> begin_records(const TrainingContext& run,
                                          const TrainState& state,
                                          const Rows& settings);

// When all is done: results.json, the report, and a checkpoint that says so.
void finish_records(const TrainingLoop::Parts& parts, TrainState state,
                    const Rows& settings, const FinalScores& finals,
                    const std::optional<Overlap>& overlap);

}  // namespace chexnet
