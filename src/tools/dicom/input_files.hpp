// The files to convert.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace chexnet {

struct InputFile {
  std::string path;
  std::string below;  // the path below the argument it was found by
};

struct InputFiles {
  std::vector<InputFile> files;         // sorted by path
  std::vector<std::string> unreadable;  // folders
  std::vector<std::string> pipes;       // arguments: or devices, sockets
  size_t broken_links = 0;  // that lead nowhere, or round in circles
  size_t no_files = 0;      // pipes, devices and sockets in folders
};

// Each argument that is a folder with all its sub-folders; links to folders are
// not followed. An argument that cannot be looked at counts as a file: reading
// it says why.
InputFiles find_input_files(const std::vector<std::string>& arguments);

}  // namespace chexnet
