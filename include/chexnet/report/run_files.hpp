// The files of a run, and what each is for, as `inspect RUN` shows and
// docs/report.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace chexnet {

struct RunFileKind {
  const char* name;  // in the run folder, with * for what varies
  const char* what;
};
// In the order in which one looks at them.
std::span<const RunFileKind> run_file_kinds();

// The files of one kind that a folder holds.
struct RunFiles {
  std::string name, what;  // as of the kind
  size_t files = 0;
  uint64_t bytes = 0;
};
// Kinds without a file are left out. Links are not followed; files of no kind
// are together at the end, with an empty name. `what` then says which, the
// first few. CheckpointError when `folder` holds no run.
std::vector<RunFiles> files_of_run(const std::filesystem::path& folder);

// A run may begin in `folder`: it holds one, is empty or not there, or has
// nothing but what a run or a job leaves before its first checkpoint: logs, job
// scripts, configs. Else CheckpointError, which names what lies in it: the
// files of a run are not to be among others.
void check_may_hold_run(const std::filesystem::path& folder);

}  // namespace chexnet
