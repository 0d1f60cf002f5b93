// What the events of a metrics.jsonl say of a run, for those who read the whole
// file and for those who see each event as it is written.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "chexnet/report/run_summary.hpp"

namespace chexnet {

// `event` is of those that for_each_event() passes on. Needs run.batch.
void add_event(RunSummary& run, const nlohmann::json& event);
// Of what add_event() has read: run.seconds_to_go.
void estimate_time_left(RunSummary& run);

}  // namespace chexnet
