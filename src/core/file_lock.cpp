// A lock is flock(2) on a file that the holder removes at the end. So a process
// that gets the lock of a file that has just been removed holds nothing: it
// checks whether the name still means its file, and starts again where it does
// not.
#include "chexnet/core/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/safe_open.hpp"

namespace chexnet {
namespace {

// The holder before may have removed the file between our open and our lock.
bool is_still_there(const std::filesystem::path& path, int fd) {
  struct stat named {
  }, opened{};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

}  // namespace

std::optional<FileLock> FileLock::try_take(const std::filesystem::path& path) {
  for (;;) {
    const int fd = open_lock_file(path);
    if (fd < 0)
      throw CheckpointError(
          "[files] {}: cannot be locked: {}. Hint: check the folder and its "
          "permissions",
          path.string(), std::strerror(errno));
    const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno == EWOULDBLOCK) {
      ::close(fd);
      return {};
    }
    if (!locked)
      log_warning("[files] " + path.string() +
                  ": this file system has no locks (" + std::strerror(errno) +
                  "); take care that no other job writes there");
    if (is_still_there(path, fd)) return FileLock(path, fd, locked);
    ::close(fd);
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      excludes_others_(other.excludes_others_),
      keeps_file_(other.keeps_file_) {}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  if (!keeps_file_) ::unlink(path_.c_str());
  ::close(fd_);
}

std::string FileLock::text() const {
  std::string text(1024, '\0');  // more than any holder writes
  const auto got = read_at(
      fd_, 0, std::as_writable_bytes(std::span(text.data(), text.size())));
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

void FileLock::write(std::string_view text) const {
  if (::ftruncate(fd_, 0) == 0 &&
      ::pwrite(fd_, text.data(), text.size(), 0) > 0)
    ::fsync(fd_);
}

void FileLock::keep_alive() const { ::futimens(fd_, nullptr); }

}  // namespace chexnet
