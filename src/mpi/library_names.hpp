// How the MPI library names itself and its parts.
#pragma once

#include <mpi.h>

#include <string>

namespace chexnet {

// Open MPI's point-to-point layer in use: after MPI_Init only the chosen one
// still has its control variables.
inline std::string messaging_layer() {
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return "";
  std::string found;
  for (const char* name : {"ob1", "ucx", "cm"}) {
    int index = 0;
    if (MPI_T_cvar_get_index(("pml_" + std::string(name) + "_priority").c_str(),
                             &index) == MPI_SUCCESS)
      found = name;
  }
  MPI_T_finalize();
  return found;
}

// "Open MPI v4.1.4"; MPI need not be started.
inline std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<size_t>(length));
  return version.substr(0, version.find(','));
}

}  // namespace chexnet
