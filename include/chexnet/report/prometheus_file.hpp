// The figures of a run as a file for Prometheus' node exporter: run.prometheus.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "chexnet/config/config.hpp"
#include "chexnet/report/run_summary.hpp"

namespace chexnet {

// The text of one run as a file in a folder that the node exporter reads
// (--collector.textfile.directory), renewed as the run writes its events. Rank
// 0 only.
class PrometheusFile {
 public:
  // Named after `run_folder`. ConfigError where no file can be made in
  // run.prometheus. Removes files of this user's runs there whose folders are
  // gone.
  PrometheusFile(const RunConfig& run, std::filesystem::path run_folder);
  // An event that metrics.jsonl holds already. Of events that come often some
  // are left for the next one to show. Whatever keeps the file from being
  // written is a warning, once: no run ends by it.
  void take(const nlohmann::json& event);

 private:
  void show(const nlohmann::json& event);
  std::filesystem::path run_folder_, path_;
  std::optional<RunSummary> run_;  // from the first event on
  double written_s_ = 0;           // now_s() of the last write
  bool warned_ = false;
};

// After the end of a run's processes: its file says how they ended. Does
// nothing for a run without run.prometheus, and passes over errors.
void renew_prometheus_file(const std::filesystem::path& run_folder);

}  // namespace chexnet
