// A file appears under its name only when it is whole: it is written without a
// name (O_TMPFILE), or under one that nobody can foresee where the file system
// has no such files, synced, and renamed.
#include "chexnet/core/output_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/core/write_hint.hpp"
#include "file_places.hpp"

namespace chexnet {
namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void write_failed(const fs::path& path, const char* what, int error,
                  const std::string& chosen_by) {
  throw CheckpointError("[files] {}: {}: {}. Hint: {}", path.string(), what,
                        std::strerror(error), write_hint(error, chosen_by));
}

namespace {

// Enough to know whose it is. With all of a long name the partial one would be
// longer than a file system allows: 255 bytes, on some 143.
std::string short_name(const fs::path& path) {
  return std::string(first_bytes(path.filename().string(), 100));
}

}  // namespace

fs::path unforeseeable_name(const fs::path& path) {
  std::array<unsigned char, 8> random{};
  if (::getrandom(random.data(), random.size(), 0) !=
      static_cast<ssize_t>(random.size()))
    throw CheckpointError(
        "[files] no random numbers from the kernel. Hint: getrandom(2)");
  const fs::path name = "." + short_name(path) + "." +
                        hex_text(std::as_bytes(std::span(random))) + ".partial";
  return path.parent_path() / name;
}

bool is_partial_name(std::string_view name) {
  constexpr std::string_view kEnd = ".partial";
  constexpr size_t kDigits = 16;
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return false;
  const size_t end = name.size() - kEnd.size();
  if (end < kDigits + 2 || name[end - kDigits - 1] != '.') return false;
  const auto digits = name.substr(end - kDigits, kDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool lock_new(int fd) {
  const bool is_held =
      ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  struct stat info {};
  return is_held && ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

void remove_left_partials(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (!is_partial_name(it->path().filename().string())) continue;
    const int fd = ::open(it->path().c_str(),
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
      std::error_code ignored;
      fs::remove_all(it->path(), ignored);
    }
    ::close(fd);
  }
}

namespace {

// For `path`; -1 with errno set. Between its making and its lock
// remove_left_partials() of another process may take the file for a leftover;
// then another one is made.
int open_named(const fs::path& path, unsigned mode, fs::path& name) {
  for (;;) {
    name = unforeseeable_name(path);
    const int fd =
        ::open(name.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) return fd;
    if (lock_new(fd)) return fd;
    ::close(fd);
  }
}

}  // namespace

PartialFolder::PartialFolder(const fs::path& path) {
  for (;;) {
    path_ = unforeseeable_name(path);
    if (::mkdir(path_.c_str(), 0777) != 0)
      write_failed(path_, "cannot be created", errno);
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0 && errno != ENOENT)
      write_failed(path_, "cannot be opened", errno);
    if (fd_ >= 0 && lock_new(fd_)) return;
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
}

PartialFolder::~PartialFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  ::close(fd_);
}

OutputFile::OutputFile(fs::path path, std::optional<unsigned> mode,
                       std::string chosen_by)
    : path_(std::move(path)), chosen_by_(std::move(chosen_by)) {
  struct stat info {};
  direct_ = is_given_stream(path_) && ::stat(path_.c_str(), &info) == 0 &&
            (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode));
  if (direct_) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail("cannot be opened", errno);
    return;
  }
  const fs::path folder = folder_of(path_);
  const unsigned first = mode ? 0600 : 0666;
  fd_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, first);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
    fd_ = open_named(path_, first, temporary_);
  if (fd_ < 0) fail("cannot be created", errno);
  // remove_left_partials() takes a file that nobody holds for a leftover.
  if (temporary_.empty()) ::flock(fd_, LOCK_EX | LOCK_NB);
  if (mode && ::fchmod(fd_, *mode) != 0) fail("its mode cannot be set", errno);
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::fail(const char* what, int error) const {
  write_failed(path_, what, error, chosen_by_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be written", errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void OutputFile::commit() {
  if (!direct_) {
    if (::fsync(fd_) != 0) fail("fsync failed", errno);
    if (temporary_.empty()) {
      const std::string self = "/proc/self/fd/" + std::to_string(fd_);
      const auto name_it = [&](const fs::path& name) {
        return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(),
                        AT_SYMLINK_FOLLOW);
      };
      // A link cannot replace a file, a rename can.
      const bool named = name_it(path_) == 0;
      if (!named && errno != EEXIST) fail("cannot be named", errno);
      if (!named) {
        const fs::path name = unforeseeable_name(path_);
        if (name_it(name) != 0) fail("cannot be named", errno);
        temporary_ = name;
      }
    }
    if (!temporary_.empty() && ::rename(temporary_.c_str(), path_.c_str()) != 0)
      fail("rename failed", errno);
    temporary_.clear();
  }
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) fail("close failed", errno);
}

unsigned hide_from_others() {
  const mode_t before = umask(007);
  umask(before | 007);
  return before;
}

void sync_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) write_failed(path, "cannot be opened for fsync", errno);
  const int rc = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some network file systems refuse fsync on folders; the data itself was
  // synced before.
  if (rc != 0 && error != EINVAL && error != ENOTSUP)
    write_failed(path, "fsync failed", error);
}

void sync_folder(const fs::path& path) { sync_file(path); }

void write_atomically(const fs::path& path, std::string_view text,
                      std::optional<unsigned> mode,
                      const std::string& chosen_by) {
  OutputFile out(path, mode, chosen_by);
  out.write(text);
  out.commit();
  sync_folder(folder_of(path));
}

}  // namespace chexnet
