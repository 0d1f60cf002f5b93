// One process at a time: an flock on a separate file, which goes away with the
// lock. A process that dies releases it. File systems without locks are logged
// once and count as free.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace chexnet {

class FileLock {
 public:
  // Nothing when another process holds it. CheckpointError when the file cannot
  // be made.
  static std::optional<FileLock> try_take(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  // False on a file system without locks: others may believe that they hold it.
  bool excludes_others() const { return excludes_others_; }
  // The file's text: "" in a new one, else that of a holder that died.
  std::string text() const;
  void write(std::string_view text) const;  // errors are passed over
  // The file does not go away with the lock.
  void keep_file() { keeps_file_ = true; }

  // Changes the file's time of writing, by which those who wait see that the
  // holder is alive.
  void keep_alive() const;

 private:
  FileLock(std::filesystem::path path, int fd, bool excludes_others)
      : path_(std::move(path)), fd_(fd), excludes_others_(excludes_others) {}
  std::filesystem::path path_;
  int fd_;
  bool excludes_others_;
  bool keeps_file_ = false;
};

}  // namespace chexnet
