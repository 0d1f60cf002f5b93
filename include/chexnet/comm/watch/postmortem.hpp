// postmortem.json of a run folder: why a run aborted, what each rank was doing,
// how to continue.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/watch/failure_detector.hpp"

namespace chexnet {

struct PostMortem {
  std::string time;        // UTC
  std::string cause;       // of cause_name, "launcher" or "start"
  std::vector<int> ranks;  // those that failed
  int exit_code = 0;
  std::string what;              // failure_text
  std::string checkpoint;        // the last whole one; empty: none
  std::string resume;            // the command that continues the run
  std::vector<RankView> views;   // of every rank
  std::string sentence() const;  // all of it for a person, one line
};

std::string postmortem_json(const PostMortem& report);
// Replaces an older one. CheckpointError when it cannot be written.
void write_postmortem(const std::filesystem::path& run_folder,
                      const PostMortem& report);
// At the start of a resumed run: the report of the one before becomes
// postmortem-1.json, -2, …
void put_postmortem_aside(const std::filesystem::path& run_folder);

struct PostMortemNote {
  std::string sentence;
  int exit_code = 0;
};
// Nothing when there is none that can be read.
std::optional<PostMortemNote> read_postmortem(
    const std::filesystem::path& run_folder);

// Name of what checkpoints/last points to; empty when there is none.
std::string last_checkpoint(const std::filesystem::path& run_folder);

}  // namespace chexnet
