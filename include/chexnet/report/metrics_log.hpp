// metrics.jsonl: one JSON object per line, each with "event" and "step"; and
// the same scalars for TensorBoard, under the tags <event>/<name>, or
// <event>/<split>/<name> where a field names a split. Text that is not UTF-8
// gets replacement characters. Rank 0 only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chexnet/report/prometheus_file.hpp"
#include "chexnet/report/tensorboard.hpp"

namespace chexnet {

// A value that TensorBoard does not show.
struct MetricJson {
  std::string text;  // JSON
};
using MetricValue =
    std::variant<double, int64_t, std::string, std::map<std::string, double>,
                 MetricJson>;  // NaN becomes null
using MetricFields = std::vector<std::pair<std::string, MetricValue>>;

class MetricsLog {
 public:
  // Where a run continues: later steps are written again, so their lines are
  // removed.
  struct Start {
    int64_t step = 0;
    bool evaluation_due = false;  // of that step
    bool has_unlogged = false;    // steps that the next train line holds
  };
  // Appends to `folder`/metrics.jsonl, after the lines past `start` (of a run
  // that went on after its last checkpoint), final scores of that step, and
  // what is no event (a line that a crash cut) are removed.
  MetricsLog(const std::filesystem::path& folder, Start start);
  ~MetricsLog();
  // Returns the line.
  std::string write(const std::string& event, int64_t step,
                    const MetricFields& fields);
  // Syncs the lines to disk. Call it before a checkpoint covers their steps: a
  // resume does not write them again. CheckpointError.
  void sync() const;
  // Each event is shown there from now on.
  void show_in(std::unique_ptr<PrometheusFile> file);
  // For values other than scalars: text, histograms, images.
  TensorBoardLog& tensorboard() { return tensorboard_; }

 private:
  std::ofstream lines_;
  TensorBoardLog tensorboard_;
  std::filesystem::path path_;
  std::unique_ptr<PrometheusFile> prometheus_;  // null: none is wanted
};

// Appends an `error` event to the metrics of a run that ended by an error. Does
// nothing where no run had begun.
void write_error_event(const std::filesystem::path& folder, int exit_code,
                       const std::string& sentence);
// The same for a run that was asked to stop while no rank of it could say so.
// Nothing more where its last event is a stop or the end.
void write_stop_event(const std::filesystem::path& folder,
                      const std::string& reason);

}  // namespace chexnet
