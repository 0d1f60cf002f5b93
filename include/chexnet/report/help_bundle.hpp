// What a help desk needs of a run, in one archive that names no patient, user or host.
#pragma once

#include <filesystem>
#include <string>

namespace chexnet {

// Writes RUN-help.tar.gz beside the run folder and returns its path: config, metrics, logs,
// post-mortems and `doctor`'s findings; never splits, predictions or weights. CheckpointError when
// there is no run or no tar.
std::filesystem::path collect_for_help(const std::filesystem::path& run_folder,
                                       const std::string& doctor_text);

// `text` with image names (of the run's split) and NIH-like ids, the home folder, user and host
// names replaced.
struct Secrets {
  std::string home, user, host;
};
std::string without_ids(const std::string& text, const Secrets& secrets);

}  // namespace chexnet
