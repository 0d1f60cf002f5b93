// Figures of runs for Prometheus, as text that its own format (0.0.4) and
// OpenMetrics 1.0 both allow: gauges alone, times as Unix time, so that a text
// nobody renews is seen to be old. Names and meanings: docs/monitoring.md.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/report/run_summary.hpp"

namespace chexnet {

// Each gauge of all runs together, as the formats want it. Runs are told apart
// by the labels `run` (name) and `folder`.
std::string openmetrics_text(const std::vector<RunSummary>& runs);

// The text of one run as a file in a folder that the node exporter reads
// (--collector.textfile.directory), renewed as the run writes its events. Rank
// 0 only.
class PrometheusFile {
 public:
  // `folder` is run.prometheus. ConfigError where no file can be made there.
  PrometheusFile(const std::filesystem::path& folder,
                 std::filesystem::path run_folder);
  // An event that metrics.jsonl holds already. Of events that come often some
  // are left for the next one to show. A file that cannot be written is a
  // warning, once.
  void take(const nlohmann::json& event);

 private:
  void write();
  std::filesystem::path path_, run_folder_;
  std::optional<RunSummary> run_;  // from the first event on
  double written_s_ = 0;           // now_s() of the last write
  bool warned_ = false;
};

// After the end of a run's processes: its file says how they ended. Does
// nothing for a run without run.prometheus, and passes over errors.
void renew_prometheus_file(const std::filesystem::path& run_folder);

}  // namespace chexnet
