// Figures of runs for Prometheus, as text that its format (0.0.4) and
// OpenMetrics 1.0 both allow: gauges alone, times as Unix time, so that a text
// nobody renews is seen to be old. Names and meanings: docs/monitoring.md.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "chexnet/core/log.hpp"
#include "chexnet/report/run_summary.hpp"

namespace chexnet {

// Each gauge of all runs together, as the formats want it. Runs are told apart
// by the labels `run` (name) and `folder` (absolute); of two runs with the same
// ones only the first is written, as a reader would refuse both; `warn` hears
// of it where they are not one folder.
std::string openmetrics_text(
    const std::vector<RunSummary>& runs,
    const std::function<void(const std::string&)>& warn = log_warning);

// The label `folder` of a run, the same for each spelling of its path: runs/a,
// ./runs/a/, /data/runs/a. A path in an object store stays as it is.
std::string folder_label(const std::filesystem::path& run_folder);

}  // namespace chexnet
