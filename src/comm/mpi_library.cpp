// The order in which MPI's library is looked for, with Open MPI's daemon
// /opt/ompi/bin/orted as this rank's launcher:
//
//   /opt/ompi/lib/libmpi.so.40     pip's and hand-made installations are on no
//   /opt/ompi/lib64/libmpi.so.40   path of the loader
//   libmpi.so.40                   where the loader looks: modules, Debian
//
// MPICH's library is called libmpi.so.12 by all that share its ABI, but
// libmpich.so.12 by Debian.
#include "chexnet/comm/mpi_library.hpp"

#include <array>
#include <cassert>
#include <optional>
#include <vector>

#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

const char* plugin_name(MpiFamily family) {
  return family == MpiFamily::kOpenMpi ? "libchexnet_mpi.so"
                                       : "libchexnet_mpich.so";
}

std::vector<std::string> library_names(MpiFamily family) {
  if (family == MpiFamily::kOpenMpi) return {"libmpi.so.40"};
  return {"libmpi.so.12", "libmpich.so.12"};
}

std::vector<std::string> candidates(MpiFamily family,
                                    const fs::path& launcher) {
  std::vector<std::string> found;
  const auto names = library_names(family);
  const fs::path installation = launcher.parent_path().parent_path();
  for (const char* folder : {"lib", "lib64"})
    for (const auto& name : names) {
      std::error_code error;
      const fs::path path = installation / folder / name;
      if (!launcher.empty() && fs::exists(path, error))
        found.push_back(path.string());
    }
  found.insert(found.end(), names.begin(), names.end());
  return found;
}

// A library that a process has opened stays.
struct OpenedMpi {
  MpiFamily family;
  std::string path;
  Plugin plugin;
};

OpenedMpi open_side(MpiFamily family, const fs::path& launcher) {
  // A build without MPICH's headers has no library for it, whatever is
  // installed.
  if (!Plugin::exists(plugin_name(family)))
    throw PluginError(
        formatted("this program was built without {} ({} is not beside it)",
                  mpi_title(family), plugin_name(family)),
        formatted("start it by the mpirun of {}, or build it where there are "
                  "the headers of {}",
                  mpi_title(other_mpi(family)), mpi_title(family)));
  std::string path;
  try {
    path = open_globally(candidates(family, launcher));
  } catch (const PluginError& e) {
    throw PluginError(formatted("no library of {} can be opened: {}",
                                mpi_title(family), e.happened),
                      library_hint(process_environment(), family));
  }
  return {family, path, Plugin(plugin_name(family))};
}

const OpenedMpi& opened_mpi(MpiFamily family, const fs::path& launcher) {
  static const OpenedMpi opened = open_side(family, launcher);
  assert(opened.family == family && "one MPI per process");
  return opened;
}

}  // namespace

const Plugin& mpi_plugin(MpiFamily family, const fs::path& launcher) {
  return opened_mpi(family, launcher).plugin;
}

LoadedMpi loaded_mpi_library(MpiFamily family, const fs::path& launcher) {
  const OpenedMpi& opened = opened_mpi(family, launcher);
  using Name = void (*)(char*, size_t);
  std::string text(1024, 0);
  reinterpret_cast<Name>(opened.plugin.symbol("chexnet_mpi_library"))(
      text.data(), text.size());
  return {mpi_name_in(text.c_str()), opened.path};
}

}  // namespace chexnet
