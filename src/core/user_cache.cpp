// Among the temporary files, where others write too, the folder must be private
// (mode 0700): nobody else may put there what this user would believe.
#include "chexnet/core/user_cache.hpp"

#include <unistd.h>

#include <cstdlib>

#include "chexnet/core/files.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// Empty where no variable names one.
fs::path own_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return cache;
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache";
  return {};
}

}  // namespace

fs::path user_cache_folder(const std::string& name) {
  if (!own_cache().empty()) return own_cache() / "chexnet-train" / name;
  return fs::temp_directory_path() /
         ("chexnet-" + name + "-" + std::to_string(::geteuid()));
}

fs::path make_user_cache_folder(const std::string& name) {
  fs::path folder = user_cache_folder(name);
  if (own_cache().empty())
    make_private_folder(folder);
  else
    fs::create_directories(folder);
  return folder;
}

}  // namespace chexnet
