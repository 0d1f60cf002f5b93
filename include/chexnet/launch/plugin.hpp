// A shared library of ours that is beside the program (or in ../lib) and is
// opened only when it is needed: MPI when there is more than one rank, CUDA
// when there is a GPU. So the program starts without either.
#pragma once

#include <string>
#include <vector>

#include "chexnet/core/error.hpp"

namespace chexnet {

// The library cannot be used.
struct PluginError : DeviceError {
  PluginError(const std::string& what_happened, const std::string& what_to_do)
      : DeviceError("[launch] {}. Hint: {}", what_happened, what_to_do),
        happened(what_happened),
        hint(what_to_do) {}
  std::string happened, hint;
};
// The file is whole, but the machine lacks what it needs.
struct MissingLibraryError : PluginError {
  using PluginError::PluginError;
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

// What is wrong with the length of a shared library, or empty: where its ELF
// headers lead past the end of the file, opening it may end in SIGBUS.
std::string cut_off_problem(const std::string& path);

// Opens the first of these libraries that can be opened, a path or a name for
// the loader to look up, for all that is opened later, and returns its path.
// PluginError with the reason of each.
std::string open_globally(const std::vector<std::string>& libraries);

// The folder of this program.
std::string program_folder();

}  // namespace chexnet
