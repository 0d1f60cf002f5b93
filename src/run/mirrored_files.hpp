// What RunMirror does with the files of a run's working folder.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace chexnet {

// Holds which folder this is, for the lock of its place.
inline constexpr const char* kPlaceId = ".place";
// Read, or drawn and written.
std::string own_id(const std::filesystem::path& folder);

// All but lock and id go to FOLDER.before-N, with a warning where that is a
// run.
void move_aside(const std::filesystem::path& folder);

// Names below `folder` of what is sent as it is, with what tells a change.
std::map<std::string, std::string> records_in(
    const std::filesystem::path& folder);

// All checkpoints of one moment in `to`, by links to their files. Returns where
// `last` and `best` lead.
std::map<std::string, std::string> link_checkpoints(
    const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace chexnet
