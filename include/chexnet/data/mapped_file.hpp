// A file in memory, read only, shared by all who map it. When it loses bytes
// meanwhile, or its storage fails, touching a page raises SIGBUS: the process
// then names the file and ends with the exit code of an outage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace chexnet {

class MappedFile {
 public:
  // Maps `size` bytes of `fd`, which may be closed afterwards. bytes() is empty
  // where that fails.
  MappedFile(std::string path, int fd, uint64_t size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace chexnet
