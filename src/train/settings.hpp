// What a run tells of itself before its first step.
#pragma once

#include <string>

#include "chexnet/core/table.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

// For people: the head of the log and of the report. `weights`: where the first
// ones came from; `engine`: what computes.
Rows settings_table(const TrainingContext& run, const std::string& weights,
                    const std::string& engine);

// For results.json, all but what was scored. `settings`: settings_table().
RunFacts run_facts(const TrainingContext& run, const Rows& settings);

// For `status`, which sees a run from outside: the fields of its `start` event.
MetricFields start_fields(const TrainingContext& run);

}  // namespace chexnet
