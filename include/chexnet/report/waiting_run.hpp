// A run that `submit` has given to a batch system and that has not begun: the
// file `submitted` in its folder names the job. The run removes it when it
// begins.
#pragma once

#include <filesystem>
#include <string>

namespace chexnet {

// Makes `run_folder` where it is absent. A folder that holds a run already is
// left as it is. CheckpointError.
void note_waiting_run(const std::filesystem::path& run_folder,
                      const std::string& job);

// False also for a folder that may not be looked into.
bool is_waiting_run(const std::filesystem::path& run_folder);
// Of such a run. The errors of read_text().
std::string waiting_job(const std::filesystem::path& run_folder);

// For the run itself: it begins.
void forget_waiting_run(const std::filesystem::path& run_folder);

}  // namespace chexnet
