#include "chexnet/launch/plugin.hpp"

#include <dlfcn.h>

#include <filesystem>

namespace chexnet {
namespace {

// Beside the program as it is built, or in lib/ as it is installed. Not by the
// loader's search path: it could find the plugin of another build.
std::string find_plugin(const std::string& file_name) {
  for (const auto* place : {"", "../lib/", "../"}) {
    const auto path =
        std::filesystem::path(program_folder()) / place / file_name;
    if (std::filesystem::exists(path)) return path.lexically_normal().string();
  }
  return {};
}

}  // namespace

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

bool Plugin::exists(const std::string& file_name) {
  return !find_plugin(file_name).empty();
}

Plugin::Plugin(const std::string& file_name) : path_(find_plugin(file_name)) {
  if (path_.empty())
    throw PluginError(
        file_name + ": not found beside the program in " + program_folder(),
        "build it, or keep the files of the bundle together");
  // Global symbols: Open MPI's own plugins look for libmpi's.
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    throw PluginError(path_ + ": cannot be opened: " + (reason ? reason : "?"),
                      "the library it names is not installed here, or of "
                      "another version");
  }
}

void* Plugin::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr)
    throw PluginError(path_ + ": no symbol " + name,
                      "program and library are of different builds");
  return found;
}

}  // namespace chexnet
