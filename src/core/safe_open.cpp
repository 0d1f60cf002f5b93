#include "chexnet/core/safe_open.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "chexnet/core/error.hpp"
#include "file_places.hpp"

namespace chexnet {
namespace fs = std::filesystem;

void make_private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    write_failed(path, "cannot be created", errno);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0)
    write_failed(path, "cannot be looked at", errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
      (info.st_mode & 077) != 0)
    throw CheckpointError(
        "[files] {}: is not a folder of this user alone, so its contents "
        "cannot be trusted. Hint: remove it, chmod 700, or choose another "
        "place",
        path.string());
}

AppendName::AppendName(const fs::path& path)
    : fd_(::open(
          path.c_str(),
          O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
          0666)) {
  struct stat info {};
  // ENXIO: a pipe that nobody reads.
  const int error = fd_ < 0 || ::fstat(fd_, &info) != 0 ? errno : 0;
  if (error == 0 && S_ISREG(info.st_mode)) return;

  if (fd_ >= 0) ::close(fd_);
  if (error != 0 && error != ENXIO)
    write_failed(path, "cannot be opened", error);
  throw CheckpointError(
      "[files] {}: is no regular file. Hint: remove it; was it put there by "
      "others?",
      path.string());
}

AppendName::~AppendName() { ::close(fd_); }

int open_lock_file(const fs::path& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
}

}  // namespace chexnet
