// A shared library of ours that is beside the program (or in ../lib) and is
// opened only when it is needed: MPI when there is more than one rank, CUDA
// when there is a GPU. So the program starts without either.
#pragma once

#include <string>

namespace chexnet {

class Plugin {
 public:
  // DeviceError when it cannot be opened; the text carries the loader's reason.
  explicit Plugin(const std::string& file_name);
  void* symbol(const char* name) const;  // DeviceError when absent
  static bool exists(const std::string& file_name);

 private:
  std::string path_;
  void* handle_;  // never closed: MPI and CUDA do not survive it
};

// The folder of the running program.
std::string program_folder();

}  // namespace chexnet
