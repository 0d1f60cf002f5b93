// The files that lead from pseudonyms back to patients: the key and the map.
// They stay outside the set that is passed on, and only their owner can read
// them. All functions throw CheckpointError.
#pragma once

#include <filesystem>
#include <string>

namespace chexnet {

// "SET.key" for SET, "SET/" and links to SET.
std::filesystem::path beside(const std::filesystem::path& set,
                             const char* ending);

// Refuses a `file` that would be inside `set`.
void require_outside(const std::filesystem::path& file,
                     const std::filesystem::path& set);

}  // namespace chexnet
