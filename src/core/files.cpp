#include "chexnet/core/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

[[noreturn]] void write_failed(const std::filesystem::path& path, const char* what, int error) {
  std::string hint = "check the path and its permissions";
  if (error == ENOSPC) hint = "free space on that file system, or write elsewhere with --out";
  if (error == EDQUOT) hint = "your quota is used up: remove files or write elsewhere with --out";
  if (error == EROFS || error == EACCES)
    hint = "the folder is not writable: choose another with --out";
  throw CheckpointError("[files] " + path.string() + ": " + what + ": " + std::strerror(error) +
                        ". Hint: " + hint);
}

[[noreturn]] void read_failed(const std::filesystem::path& path, int error) {
  throw DataError("[files] " + path.string() + ": cannot be read: " + std::strerror(error) +
                  ". Hint: check the path and its permissions");
}

std::string read_gzip(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) read_failed(path, errno);
  std::string text;
  std::vector<char> buffer(1 << 18);
  for (;;) {
    const int count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (count < 0)
      throw DataError("[files] " + path.string() + ": damaged gzip data. Hint: download it again");
    if (count == 0) return text;
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
  if (fd < 0) read_failed(path, errno);
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
  if (got < 0) read_failed(path, error);
  into.resize(static_cast<std::size_t>(got));  // it may have shrunk while it was read
}

std::string read_text(const std::filesystem::path& path) {
  if (path.extension() == ".gz") return read_gzip(path);
  std::vector<std::byte> bytes;
  read_bytes(path, bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void sync_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) write_failed(path, "cannot be opened for fsync", errno);
  const int rc = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some network file systems refuse fsync on folders; the data itself was synced before.
  if (rc != 0 && error != EINVAL && error != ENOTSUP) write_failed(path, "fsync failed", error);
}

void sync_folder(const std::filesystem::path& path) { sync_file(path); }

OutputFile::OutputFile(std::filesystem::path path)
    : path_(std::move(path)),
      fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (fd_ < 0) write_failed(path_, "cannot be created", errno);
}
OutputFile::~OutputFile() {
  if (fd_ >= 0) {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
}
void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) write_failed(path_, "cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}
void OutputFile::close() {
  if (::fsync(fd_) != 0) write_failed(path_, "fsync failed", errno);
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) write_failed(path_, "close failed", errno);
}

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path partial = path;
  partial += ".partial";
  OutputFile out(partial);
  out.write(text);
  out.close();
  if (::rename(partial.c_str(), path.c_str()) != 0) write_failed(path, "rename failed", errno);
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

}  // namespace chexnet
