// A run folder read from outside, while it runs or after: where it stands, and
// how runs compare. Read only; a torn last line of metrics.jsonl is skipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chexnet/eval/figures.hpp"
#include "chexnet/report/gpu_totals.hpp"

namespace chexnet {

// Of all train lines; waits are means of the ranks.
struct RunWaits {
  double seconds = 0, data_s = 0, allreduce_s = 0;
  int64_t stalls = 0, steps = 0;
  int64_t images_seen = 0, last_step = 0;  // of the line before
};

// Of the last `system` line: the GPUs of the ranks that have one.
struct GpuUse {
  int gpus = 0;
  double percent = 0, least_percent = 0;  // busy: their mean, and the least
  int least_rank = 0;
  double most_memory_bytes = 0;
  double power_w = 0;  // of all together; 0: not known
};

struct RunSummary {
  std::string folder, name;
  // "running", "finished", "stopped", "failed" (by an error it could write
  // down), "aborted" (by the watchdog), "died" (no process holds its lock),
  // "silent", "not started", "waiting" (for a batch system to begin it: only
  // folder, name and job are known), "ensemble" (no training made it)
  std::string state;
  bool has_events = false;    // in metrics.jsonl: else no score is known here
  int64_t damaged_lines = 0;  // of it
  bool has_results = false;   // results.json, which a run writes at its end
  int64_t batch = 0;          // of all ranks; 0: not settled yet
  int64_t step = 0, total_steps = 0, ranks = 0, restarts = 0;
  int64_t epoch = 0, epoch_end_step = 0;  // complete ones; the last one's end
  double images_per_s = 0;  // over the last train line; 0: none yet
  std::optional<double> data_wait_fraction;  // of it, mean of the ranks
  RunWaits waits;
  std::optional<GpuUse> gpu;
  std::optional<GpuTotals> gpu_totals;  // of the last start
  // By power and images_per_s.
  std::optional<double> joules_per_image() const {
    if (!gpu || gpu->power_w <= 0 || images_per_s <= 0) return std::nullopt;
    return gpu->power_w / images_per_s;
  }
  std::optional<double> loss;
  int64_t best_step = -1;  // of the checkpoint it chose
  // Mean AUROC there; without a best one, of the last evaluation.
  MeanFigure val_auroc;
  bool val_is_collapsed = false;  // each finding's is exactly 0.5
  std::string validation_sha256;  // of all that decides what it is of
  // By split, of the final evaluation.
  std::map<std::string, MeanFigure> final_auroc;
  std::vector<std::string> members;  // runs, of an ensemble
  std::optional<int> slowest_rank;
  // Its own time per step against the median of the ranks.
  std::optional<double> slowest_ratio;
  std::string host, job, checkpoint;
  std::optional<double> checkpoint_s, written_s;  // Unix time; none: not there
  std::optional<double> seconds_to_go, job_seconds_left;
  std::string last_words;  // of a post-mortem
  std::string resubmit;    // what starts its job again by hand
  std::string rung;  // of train.rungs: "ends after 3 epochs: place 5 of 8, …"
  std::string error;                          // the sentence it failed with
  int exit_code = 0;                          // of an error or a post-mortem
  int stopped_process = 0;                    // rank 0's, by a signal; 0: not
  std::vector<std::string> stragglers;        // "rank 3 on node2: cause"
  std::map<std::string, std::string> config;  // by key, as text
};

// Whether `ensemble` has made it: a run folder whose model is no checkpoint.
bool is_ensemble_folder(const std::filesystem::path& folder);
// CheckpointError when `folder` holds no run.
void check_holds_run(const std::filesystem::path& folder);
// Also of a run that waits to begin. CheckpointError when `folder` holds no run
// or may not be read.
RunSummary summarize_run(const std::filesystem::path& folder);
// Looks for run.checkpoint in run.folder again.
void find_checkpoint(RunSummary& run);
// The runs at or directly below `folder`, in order of name, also those that
// wait to begin. Warns of folders that may not be looked into or hold runs
// themselves, and of runs without a config.yaml. CheckpointError where there is
// no run.
std::vector<std::filesystem::path> find_runs(
    const std::filesystem::path& folder);
// Whether there is one directly below `folder`.
bool has_runs_below(const std::filesystem::path& folder);
// Adds the folder to `seen`; false, with a warning, where it is there already,
// by another name too.
bool is_new_run(const std::filesystem::path& folder,
                std::set<std::filesystem::path>& seen);

inline constexpr const char* kEnsemble = "ensemble";  // state
inline constexpr const char* kNoEvents =
    "metrics.jsonl is empty, damaged or not there";
inline constexpr const char* kCollapsed =
    "each finding's validation AUROC is exactly 0.5, as of a network that "
    "gives all images one score";
std::string summary_text(const RunSummary& run);
std::string summary_json(const RunSummary& run);

}  // namespace chexnet
