// What a file begins with, so that it is looked at before memory is taken for
// all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace chexnet {

struct FileStart {
  std::vector<std::byte> bytes;
  uint64_t size = 0;  // of the file
};

// The first `count` bytes of a regular file, or all where it is shorter;
// nothing of a pipe or device. AbsentError, OutageError.
FileStart read_start(const std::string& path, size_t count);

}  // namespace chexnet
