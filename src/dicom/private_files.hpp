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

// Refuses a `file` that would be inside `set`, by whatever links.
void require_outside(const std::filesystem::path& file,
                     const std::filesystem::path& set);

// The key's bytes. A key that is not there is made, mode 0600; one that others
// can read, or that somebody else made, is refused.
std::string read_or_make_key(const std::filesystem::path& path);

}  // namespace chexnet
