// Runs that are looked at again and again, every few seconds, by somebody who
// may do so for weeks (`status --listen`).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "chexnet/report/run_summary.hpp"

namespace chexnet {

// A run's summary, as often as wanted: of metrics.jsonl only what was added is
// read. One thread at a time.
class FollowedRun {
 public:
  explicit FollowedRun(std::filesystem::path folder);
  // As it is now. The errors of summarize_run().
  RunSummary now();

 private:
  void read_config();
  void read_events();
  std::filesystem::path folder_;
  std::string config_text_;
  RunSummary events_;  // what config and events say
  // metrics.jsonl was read up to here, and these bytes stood before.
  uint64_t read_ = 0;
  std::string tail_;
};

// The runs at or below folders. One thread at a time.
class FollowedRuns {
 public:
  explicit FollowedRuns(std::vector<std::string> folders);
  // Each run once, in the order of the folders. One that cannot be read, and a
  // folder without runs, are a warning: again only after they had been fine.
  std::vector<RunSummary> now();
  // For who looks at them: the same of what it finds.
  void warn(const std::string& text);

 private:
  std::vector<std::string> folders_;
  std::map<std::filesystem::path, FollowedRun> runs_;  // by absolute path
  std::set<std::string> warnings_, warned_;  // this time, and the last
};

}  // namespace chexnet
