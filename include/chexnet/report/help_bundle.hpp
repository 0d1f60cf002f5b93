// The files of a run that a help desk needs, in one archive that names no
// patient, image, user, host or folder.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "chexnet/report/redaction.hpp"

namespace chexnet {

// Hides the names of a run in texts about it: those of its split.csv, the paths
// in its config, hosts of its records and of `hosts`, the owners of its files
// and this user. CheckpointError when there is no run.
Redaction redaction_of_run(const std::filesystem::path& folder,
                           const std::set<std::string>& hosts = {});

// Writes chexnet-help.tar.gz into the working folder and returns its path: the
// config without its free texts, metrics, logs, post-mortems, `doctor_text` and
// the report in the form for passing on; never splits, predictions or weights.
// Names are hidden as by redaction_of_run(). CheckpointError when there is no
// run or no tar.
std::filesystem::path collect_for_help(const std::filesystem::path& run_folder,
                                       const std::string& doctor_text,
                                       const std::set<std::string>& hosts);

}  // namespace chexnet
