// Among the temporary files, where others write too, the folder must be private
// (mode 0700): nobody else may put files there that this user would trust.
#include "chexnet/core/user_cache.hpp"

#include <unistd.h>

#include <cstdlib>

#include "chexnet/core/error.hpp"
#include "chexnet/core/safe_open.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// Of the XDG Base Directory Specification, which has relative paths ignored;
// empty where no variable names a folder.
fs::path own_folder(const char* variable, const char* below_home) {
  const char* folder = std::getenv(variable);
  const char* home = std::getenv("HOME");
  if (folder != nullptr && fs::path(folder).is_absolute()) return folder;
  if (home != nullptr && *home != '\0') return fs::path(home) / below_home;
  return {};
}

fs::path own_cache() { return own_folder("XDG_CACHE_HOME", ".cache"); }

}  // namespace

fs::path user_cache_folder(const std::string& name) {
  if (!own_cache().empty()) return own_cache() / "chexnet-train" / name;
  return fs::temp_directory_path() /
         ("chexnet-" + name + "-" + std::to_string(::geteuid()));
}

fs::path make_user_cache_folder(const std::string& name) {
  fs::path folder = user_cache_folder(name);
  if (own_cache().empty()) {
    make_private_folder(folder);
    return folder;
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw CheckpointError(
        "[files] {}: {}. Hint: XDG_CACHE_HOME may name another place",
        folder.string(), error.message());
  return folder;
}

std::optional<fs::path> user_config_folder() {
  const fs::path own = own_folder("XDG_CONFIG_HOME", ".config");
  if (own.empty()) return std::nullopt;
  return own / "chexnet-train";
}

}  // namespace chexnet
