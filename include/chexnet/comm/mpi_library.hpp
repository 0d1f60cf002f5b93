// The MPI library that ranks load. There are two ABIs, Open MPI's and MPICH's,
// and for each a library of ours beside the program, made of one source
// (src/comm/mpi). Neither names MPI's own: that is opened first, so that it is
// of the installation whose launcher started the rank.
#pragma once

#include <filesystem>
#include <string>

#include "chexnet/launch/mpi_family.hpp"
#include "chexnet/launch/plugin.hpp"

namespace chexnet {

// Our side of the MPI of `family`, opened at the first call; one family per
// process. `launcher`: a program of the installation whose library goes first;
// the others are where the loader looks. PluginError when the library or our
// side of it cannot be used, with what to do.
const Plugin& mpi_plugin(MpiFamily family,
                         const std::filesystem::path& launcher);

struct LoadedMpi {
  MpiName name;      // as it says before MPI is started
  std::string path;  // of its library
};
// PluginError when it cannot be loaded.
LoadedMpi loaded_mpi_library(MpiFamily family,
                             const std::filesystem::path& launcher);

}  // namespace chexnet
