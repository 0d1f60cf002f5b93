// A run's summary from the events of its metrics.jsonl, for readers of the
// whole file and for those who see each event as it is written.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "chexnet/report/run_summary.hpp"

namespace chexnet {

// `event` is of those that for_each_event() passes on. Needs run.batch.
void add_event(RunSummary& run, const nlohmann::json& event);
// From the events that add_event() has read: run.seconds_to_go.
void estimate_time_left(RunSummary& run);

}  // namespace chexnet
