// A shared library of ours that is beside the program (or in ../lib) and is
// opened only when it is needed: MPI when there is more than one rank, CUDA
// when there is a GPU. So the program starts without either.
#pragma once

#include <string>

#include "chexnet/core/error.hpp"

namespace chexnet {

// The library cannot be used.
struct PluginError : DeviceError {
  PluginError(const std::string& what_happened, const std::string& what_to_do)
      : DeviceError("[launch] " + what_happened + ". Hint: " + what_to_do),
        happened(what_happened),
        hint(what_to_do) {}
  std::string happened, hint;
};

class Plugin {
 public:
  // PluginError when it cannot be opened; the text carries the loader's reason.
  explicit Plugin(const std::string& file_name);
  void* symbol(const char* name) const;  // PluginError when absent
  static bool exists(const std::string& file_name);

 private:
  std::string path_;
  void* handle_;  // never closed: MPI and CUDA do not survive it
};

// The folder of the running program.
std::string program_folder();

}  // namespace chexnet
