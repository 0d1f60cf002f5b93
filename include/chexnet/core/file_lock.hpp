// One process at a time: an flock on a file of its own, which goes away with
// the lock. A process that dies releases it. File systems without locks are
// logged once and count as free.
#pragma once

#include <filesystem>
#include <optional>

namespace chexnet {

class FileLock {
 public:
  // Nothing when another process holds it. CheckpointError when the file cannot
  // be made.
  static std::optional<FileLock> try_take(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  // Changes the file's time of writing, by which those who wait see that the
  // holder is alive.
  void keep_alive() const;

 private:
  FileLock(std::filesystem::path path, int fd)
      : path_(std::move(path)), fd_(fd) {}
  std::filesystem::path path_;
  int fd_;
};

}  // namespace chexnet
