// Nothing here waits for the partner of a pipe that was planted.
#include "chexnet/core/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "chexnet/core/error.hpp"
#include "file_places.hpp"

namespace chexnet {
namespace fs = std::filesystem;

// Pipes and devices that a person gives on purpose: /dev/stdin, <(command),
// /dev/null. Any other may have been planted, and opening or reading it would
// wait for a partner forever.
bool is_given_stream(const fs::path& path) {
  const std::string name = path.lexically_normal().string();
  return name.starts_with("/dev/fd/") || name.starts_with("/dev/std") ||
         name == "/dev/null" || name == "/dev/full" ||
         name.starts_with("/proc/");
}

namespace {

// Open for reading, never waiting for a pipe's partner.
class Readable {
 public:
  explicit Readable(const fs::path& path) {
    const bool given = is_given_stream(path);
    fd_ = ::open(path.c_str(),
                 O_RDONLY | O_CLOEXEC | O_NOCTTY | (given ? 0 : O_NONBLOCK));
    const int error = fd_ < 0 || ::fstat(fd_, &info_) != 0 ? errno : 0;
    std::error_code ignored;
    if (error == ENXIO && fs::is_socket(path, ignored)) refuse(path);
    if (error != 0) fail(path, error);
    if (S_ISDIR(info_.st_mode)) fail(path, EISDIR);
    if (!S_ISREG(info_.st_mode) && !given) refuse(path);
  }
  ~Readable() { close(); }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;

  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  bool is_regular() const { return S_ISREG(info_.st_mode); }
  size_t size() const { return static_cast<size_t>(info_.st_size); }

 private:
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  [[noreturn]] void fail(const fs::path& path, int error) {
    close();
    throw_unreadable("files", path.string(), error);
  }
  [[noreturn]] void refuse(const fs::path& path) {
    close();
    throw AbsentError(
        "[files] {}: is no regular file. Hint: a pipe is given as /dev/stdin "
        "or <(command)",
        path.string());
  }

  int fd_ = -1;
  struct stat info_ {};
};

constexpr size_t kLargestTable = size_t{1} << 30;  // unpacked; NIH's has 7 MB
// Tables become 5 to 50 times smaller, and nothing more than 1,032 times.
constexpr size_t kMostExpansion = 100, kAnyExpansion = size_t{16} << 20;

std::string read_gzip(const fs::path& path) {
  Readable readable(path);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(
      gzdopen(readable.fd(), "rb"), gzclose);
  if (!file) throw_unreadable("files", path.string(), errno);
  const size_t packed = readable.is_regular() ? readable.size() : SIZE_MAX;
  readable.release();  // gzclose closes it
  std::string text;
  std::vector<char> buffer(1 << 18);
  for (;;) {
    const int count =
        gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    // A gzip stream that was cut off reads as a shorter one; only gzerror
    // knows.
    int state = Z_OK;
    gzerror(file.get(), &state);
    if (count < 0 || (count == 0 && state != Z_OK))
      throw DataError(
          "[files] {}: damaged gzip data, or cut off. Hint: download it again",
          path.string());
    if (count == 0) return text;
    if (text.size() > kAnyExpansion && text.size() / kMostExpansion > packed)
      throw DataError(
          "[files] {}: unpacks to more than {} times its size. Hint: is this a "
          "table of images and labels? Unpacked, it is read whatever it holds",
          path.string(), kMostExpansion);
    if (text.size() + static_cast<size_t>(count) > kLargestTable)
      throw DataError(
          "[files] {}: unpacks to more than {} GiB. Hint: is this a table of "
          "images and labels?",
          path.string(), kLargestTable >> 30);
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

// The bytes of a pipe until its end, or `most` of them.
ptrdiff_t read_stream(int fd, std::vector<std::byte>& into, size_t most) {
  constexpr size_t kPiece = 65536;
  size_t done = 0;
  while (done < most) {
    const size_t piece = std::min(kPiece, most - done);
    into.resize(done + piece);
    const auto count = ::read(fd, into.data() + done, piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ptrdiff_t>(done);
}

void read_at_most(const std::string& path, size_t most,
                  std::vector<std::byte>& into) {
  const Readable file(path);
  ptrdiff_t got = 0;
  if (file.is_regular()) {
    into.resize(std::min(file.size(), most));
    got = read_at(file.fd(), 0, into);
  } else {
    got = read_stream(file.fd(), into, most);
  }
  if (got < 0) throw_unreadable("files", path, errno);
  // It may have shrunk while it was read.
  into.resize(static_cast<size_t>(got));
}

}  // namespace

ptrdiff_t read_at(int fd, uint64_t offset, std::span<std::byte> into) {
  size_t done = 0;
  while (done < into.size()) {
    const auto count = ::pread(fd, into.data() + done, into.size() - done,
                               static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ptrdiff_t>(done);
}

void read_bytes(const std::string& path, std::vector<std::byte>& into) {
  read_at_most(path, SIZE_MAX, into);
}

FileStart read_start(const std::string& path, size_t count) {
  const Readable file(path);
  if (!file.is_regular()) return {};
  FileStart start{std::vector<std::byte>(std::min(count, file.size())),
                  file.size()};
  const auto got = read_at(file.fd(), 0, start.bytes);
  if (got < 0) throw_unreadable("files", path, errno);
  start.bytes.resize(static_cast<size_t>(got));
  return start;
}

std::string read_text(const fs::path& path) {
  if (path.extension() == ".gz") return read_gzip(path);
  return read_text_start(path, SIZE_MAX);
}

std::string read_text_start(const fs::path& path, size_t most) {
  std::vector<std::byte> bytes;
  read_at_most(path, most, bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace chexnet
