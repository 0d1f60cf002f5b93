// Run folders that a user names, for commands that read several.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace chexnet {

// ConfigError, or CheckpointError, where `run` holds no run: an empty file
// would do as a config, but no run left it.
void check_config_of(const std::filesystem::path& run);

// A folder of runs, as a sweep leaves it, stands for its runs. Each is checked:
// of those that were named, one that is damaged is an error; of a folder of
// runs, one that is damaged or waits to begin is left out, with a warning.
std::vector<std::filesystem::path> runs_below(
    const std::vector<std::string>& folders);

}  // namespace chexnet
