// Files for parsers that open a path or ask a store: in memory, so that a
// fuzzer makes thousands a second.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/data/storage/store.hpp"
#include "target.hpp"

namespace chexnet::fuzz {

// A nameless file with a path for this process.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    require(fd_ >= 0, "memfd_create works");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Its path, with this content from now on.
  std::string holding(Bytes bytes) {
    require(ftruncate(fd_, 0) == 0, "a file in memory can be emptied");
    const auto count = pwrite(fd_, bytes.data(), bytes.size(), 0);
    require(count == static_cast<ssize_t>(bytes.size()),
            "a file in memory can be written");
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

// A folder that goes with this object, in memory where the system has /dev/shm:
// for code that writes files under names.
class MemoryFolder {
 public:
  explicit MemoryFolder(const std::string& name) {
    const std::filesystem::path memory = "/dev/shm";
    path_ = (exists(memory) ? memory : std::filesystem::temp_directory_path()) /
            ("fuzz-" + name + "-" + std::to_string(getpid()));
    create_directories(path_);
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// One file, whatever the path.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Bytes bytes) : bytes_(bytes) {}
  void read(const std::string&, uint64_t offset, uint64_t count,
            std::vector<std::byte>& into, const ReadOptions&) override {
    const uint64_t from = std::min<uint64_t>(offset, bytes_.size());
    const auto piece =
        bytes_.subspan(from, std::min<uint64_t>(count, bytes_.size() - from));
    into.assign(piece.begin(), piece.end());
  }
  void read_whole(const std::string&, std::vector<std::byte>& into,
                  const ReadOptions&) override {
    into.assign(bytes_.begin(), bytes_.end());
  }
  using Store::list;
  std::vector<StoredFile> list(const std::string& path,
                               const std::function<void()>&) override {
    return {{path, bytes_.size()}};
  }
  bool exists(const std::string&) override { return true; }

 private:
  Bytes bytes_;
};

}  // namespace chexnet::fuzz
