// What a help desk needs of a run, in one archive that names no patient, image,
// user, host or folder.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace chexnet {

// Writes chexnet-help.tar.gz into the working folder and returns its path: the
// config without its free texts, metrics, logs, post-mortems and `doctor_text`;
// never splits, predictions or weights. Hidden are all names of the run's
// split.csv, the places its config names, hosts that its records or `hosts`
// name, the owners of its files and this user (Redaction). CheckpointError when
// there is no run or no tar.
std::filesystem::path collect_for_help(const std::filesystem::path& run_folder,
                                       const std::string& doctor_text,
                                       const std::set<std::string>& hosts);

}  // namespace chexnet
