// How the MPI library names itself and its parts.
#pragma once

#include <mpi.h>

#include <string>

#include "chexnet/launch/mpi_family.hpp"

namespace chexnet {

// Its full version text, in several lines; MPI need not be started.
inline std::string library_text() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, 0);
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<size_t>(length));
  return text;
}

// "Open MPI 4.1.4". The same build works with others of its ABI, so the version
// at compile time says nothing.
inline std::string library_version() {
  const std::string text = library_text();
  const MpiName name = mpi_name_in(text);
  return name.family ? name.text() : text.substr(0, text.find_first_of(",\n"));
}

#ifdef OMPI_MAJOR_VERSION
// The point-to-point layer in use: after MPI_Init only the chosen one still has
// its control variables.
inline std::string messaging_layer() {
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return "";
  std::string found;
  for (const char* name : {"ob1", "ucx", "cm"}) {
    int index = 0;
    if (MPI_T_cvar_get_index(("pml_" + std::string(name) + "_priority").c_str(),
                             &index) == MPI_SUCCESS)
      found = "PML " + std::string(name);
  }
  MPI_T_finalize();
  return found;
}
#else
// "ch4:ofi": what MPICH says of itself on the line of its device.
inline std::string messaging_layer() {
  const std::string text = library_text();
  const std::string key = "MPICH Device:";
  const auto line = text.find(key);
  if (line == std::string::npos) return "";
  const auto begin = text.find_first_not_of(" \t", line + key.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}
#endif

}  // namespace chexnet
