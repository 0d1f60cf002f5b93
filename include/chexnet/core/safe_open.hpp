// Files that grow, locks and folders of ours where others may write: we open
// none through a link that somebody planted.
#pragma once

#include <filesystem>
#include <string>

namespace chexnet {

// A folder for this user alone (mode 0700), made where it is absent.
// CheckpointError when it is a link, belongs to somebody else, or others may
// write or read in it.
void make_private_folder(const std::filesystem::path& path);

// For libraries that open by name: the name, while this object lives, of a file
// opened to append, made where it is absent, never through a link nor into a
// pipe. CheckpointError.
class AppendName {
 public:
  explicit AppendName(const std::filesystem::path& path);
  ~AppendName();
  AppendName(const AppendName&) = delete;
  AppendName& operator=(const AppendName&) = delete;
  std::string name() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// A file to lock (flock), made where it is absent, never through a link; -1
// with errno set.
int open_lock_file(const std::filesystem::path& path);

}  // namespace chexnet
