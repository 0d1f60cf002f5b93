// The user's own place for what can be made again.
#pragma once

#include <filesystem>
#include <string>

namespace chexnet {

// $XDG_CACHE_HOME/chexnet-train/NAME or ~/.cache/chexnet-train/NAME; where
// neither variable is set, a folder of this user's among the temporary files.
std::filesystem::path user_cache_folder(const std::string& name);
// The same, made where it is absent. CheckpointError or filesystem_error.
std::filesystem::path make_user_cache_folder(const std::string& name);

}  // namespace chexnet
