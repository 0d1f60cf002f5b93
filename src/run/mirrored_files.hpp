// Which files of a run are in an object store, and what RunMirror does with
// those of its working folder.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace chexnet {

// Of names below a run's place, or below its working folder. Other runs may be
// below the place: no name of theirs counts.
bool is_record(const std::string& name);
struct StepFile {
  std::string step, file;
};
// Of checkpoints/STEP/FILE.
std::optional<StepFile> step_file(const std::string& name);
bool is_file_of_run(const std::string& name);

// Holds which folder this is, for the lock of its place. Without it what is in
// the folder is no more than what an unfinished start has fetched.
inline constexpr const char* kPlaceId = ".place";
// Read, or drawn where there is none.
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
