#include "chexnet/core/files.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

[[noreturn]] void write_failed(const fs::path& path, const char* what, int error) {
  std::string hint = "check the path and its permissions";
  if (error == ENOSPC) hint = "free space on that file system, or write elsewhere with --out";
  if (error == EDQUOT) hint = "your quota is used up: remove files or write elsewhere with --out";
  if (error == EROFS || error == EACCES)
    hint = "the folder is not writable: choose another with --out";
  throw CheckpointError("[files] " + path.string() + ": " + what + ": " + std::strerror(error) +
                        ". Hint: " + hint);
}

constexpr std::size_t kLargestTable = std::size_t{1} << 30;  // unpacked; NIH's has 7 MB

std::string read_gzip(const fs::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw_unreadable("files", path.string(), errno);
  std::string text;
  std::vector<char> buffer(1 << 18);
  for (;;) {
    const int count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    // A stream that was cut off reads as a shorter one; only gzerror knows.
    int state = Z_OK;
    gzerror(file.get(), &state);
    if (count < 0 || (count == 0 && state != Z_OK))
      throw DataError("[files] " + path.string() +
                      ": damaged gzip data, or cut off. Hint: download it again");
    if (count == 0) return text;
    if (text.size() + static_cast<std::size_t>(count) > kLargestTable)
      throw DataError("[files] " + path.string() + ": unpacks to more than " +
                      std::to_string(kLargestTable >> 30) +
                      " GiB. Hint: is this a table of images and labels?");
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// What a pipe gives until its end; a folder gives EISDIR.
std::ptrdiff_t read_stream(int fd, std::vector<std::byte>& into) {
  constexpr std::size_t kPiece = 65536;
  std::size_t done = 0;
  for (;;) {
    into.resize(done + kPiece);
    const auto count = ::read(fd, into.data() + done, kPiece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) return static_cast<std::ptrdiff_t>(done);
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace

bool may_pass(int error) {
  switch (error) {
    case EIO:
    case ESTALE:
    case EAGAIN:
    case EBUSY:
    case EINTR:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOLINK:
    case EREMOTEIO:
    case ETIMEDOUT:
    case ENOTCONN:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ESHUTDOWN:  // of a network file system whose server is away
    case ENODEV:
    case ENXIO:
      return true;
    default:
      return false;
  }
}

void throw_unreadable(const std::string& origin, const std::string& path, int error) {
  const std::string text =
      "[" + origin + "] " + path + ": cannot be read: " + std::strerror(error) + ". Hint: ";
  if (error == EMFILE || error == ENFILE)
    throw OutageError(text + "too many open files: raise ulimit -n");
  if (may_pass(error))
    throw OutageError(text +
                      "the storage does not answer: see dmesg and the file server; start "
                      "again when it does");
  throw AbsentError(text + "check the path and its permissions");
}

std::ptrdiff_t read_at(int fd, std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto count =
        ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<std::ptrdiff_t>(done);
}

void read_bytes(const std::string& path, std::vector<std::byte>& into) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw_unreadable("files", path, errno);
  struct stat info {};
  std::ptrdiff_t got = ::fstat(fd, &info);
  if (got == 0 && S_ISREG(info.st_mode)) {
    into.resize(static_cast<std::size_t>(info.st_size));
    got = read_at(fd, 0, into);
  } else if (got == 0) {
    got = read_stream(fd, into);
  }
  const int error = errno;
  ::close(fd);
  if (got < 0) throw_unreadable("files", path, error);
  into.resize(static_cast<std::size_t>(got));  // it may have shrunk while it was read
}

std::string read_text(const fs::path& path) {
  if (path.extension() == ".gz") return read_gzip(path);
  std::vector<std::byte> bytes;
  read_bytes(path, bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void sync_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) write_failed(path, "cannot be opened for fsync", errno);
  const int rc = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some network file systems refuse fsync on folders; the data itself was synced before.
  if (rc != 0 && error != EINVAL && error != ENOTSUP) write_failed(path, "fsync failed", error);
}

void sync_folder(const fs::path& path) { sync_file(path); }

fs::path unforeseeable_name(const fs::path& path) {
  std::array<unsigned char, 8> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    throw CheckpointError("[files] no random numbers from the kernel. Hint: getrandom(2)");
  const fs::path name = "." + path.filename().string() + "." +
                        hex_text(std::as_bytes(std::span(random))) + ".partial";
  return path.parent_path() / name;
}

OutputFile::OutputFile(fs::path path, std::optional<unsigned> mode) : path_(std::move(path)) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode))) {
    direct_ = true;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) write_failed(path_, "cannot be opened", errno);
    return;
  }
  const fs::path folder = folder_of(path_);
  const unsigned first = mode ? 0600 : 0666;
  fd_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, first);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    temporary_ = unforeseeable_name(path_);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, first);
  }
  if (fd_ < 0) write_failed(path_, "cannot be created", errno);
  if (mode && ::fchmod(fd_, *mode) != 0) write_failed(path_, "its mode cannot be set", errno);
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) write_failed(path_, "cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void OutputFile::commit() {
  if (!direct_) {
    if (::fsync(fd_) != 0) write_failed(path_, "fsync failed", errno);
    if (temporary_.empty()) {
      const std::string self = "/proc/self/fd/" + std::to_string(fd_);
      const auto name_it = [&](const fs::path& name) {
        return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
      };
      // A link cannot replace a file, a rename can.
      const fs::path name = unforeseeable_name(path_);
      if (name_it(name) != 0) write_failed(path_, "cannot be named", errno);
      temporary_ = name;
    }
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
      write_failed(path_, "rename failed", errno);
    temporary_.clear();
  }
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) write_failed(path_, "close failed", errno);
}

void write_atomically(const fs::path& path, std::string_view text, std::optional<unsigned> mode) {
  OutputFile out(path, mode);
  out.write(text);
  out.commit();
  sync_folder(folder_of(path));
}

void make_private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    write_failed(path, "cannot be created", errno);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) write_failed(path, "cannot be looked at", errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    throw CheckpointError(
        "[files] " + path.string() +
        ": is no folder of this user alone, so what lies there cannot be trusted. "
        "Hint: remove it, chmod 700, or choose another place");
}

AppendName::AppendName(const fs::path& path)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666)) {
  if (fd_ < 0) write_failed(path, "cannot be opened", errno);
}

AppendName::~AppendName() { ::close(fd_); }

int open_lock_file(const fs::path& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
}

}  // namespace chexnet
