// A run folder read from outside, while it runs or after: where it stands, and how runs compare.
// Read only; a torn last line of metrics.jsonl is skipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace chexnet {

struct RunSummary {
  std::string folder, name;
  std::string state;  // "running", "finished", "stopped", "halted", "silent", "not started"
  std::int64_t step = 0, total_steps = 0, epoch = 0, ranks = 0, restarts = 0;
  double images_per_s = 0;     // over the last train line
  double data_wait_share = 0;  // of it
  std::optional<double> loss, best_auroc;
  std::optional<int> slowest_rank;
  double slowest_ratio = 1;  // its own time a step against the median of the ranks
  std::string host, job, checkpoint;
  double checkpoint_age_s = -1, written_age_s = -1;  // -1: none
  std::optional<double> seconds_to_go, job_seconds_left;
  std::string last_words;                     // of a post-mortem
  std::vector<std::string> stragglers;        // "rank 3 on node2: cause"
  std::map<std::string, std::string> config;  // by key, as text
};

// CheckpointError when `folder` holds no run.
RunSummary summarise_run(const std::filesystem::path& folder);
// The runs at or directly below `folder`, in order of name.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder);

std::string summary_text(const RunSummary& run);
std::string summary_json(const RunSummary& run);

// Runs that differ only in seed (and name, folder) form a group.
struct RunGroup {
  std::string settings;  // "train.lr=0.001 train.lr_scaling=linear": what differs between groups
  std::vector<const RunSummary*> runs;
  int scored = 0;                       // runs with a validation AUROC
  double mean_auroc = 0, sd_auroc = 0;  // best of each run; sd of the sample, 0 for one run
};
std::vector<RunGroup> compare_runs(const std::vector<RunSummary>& runs);
// A line for each run, and for several the comparison.
std::string comparison_text(const std::vector<RunSummary>& runs);

}  // namespace chexnet
