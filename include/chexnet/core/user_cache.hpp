// The user's folders: for what can be made again, and for what cannot.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace chexnet {

// $XDG_CACHE_HOME/chexnet-train/NAME or ~/.cache/chexnet-train/NAME; where
// neither variable is set, a folder of this user's among the temporary files.
std::filesystem::path user_cache_folder(const std::string& name);
// The same, made where it is absent. CheckpointError where that fails.
std::filesystem::path make_user_cache_folder(const std::string& name);

// For what cannot be made again: $XDG_CONFIG_HOME/chexnet-train or
// ~/.config/chexnet-train, whether it is there or not; nothing where neither
// variable is set.
std::optional<std::filesystem::path> user_config_folder();

}  // namespace chexnet
