// Containers are read many times, so their descriptors are kept open; single
// images are opened, read and closed. A read that fails for a reason that may
// pass is tried again with doubled pauses for up to `retry_s`, after its
// descriptor was forgotten: a stale handle never recovers.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/storage/store.hpp"
#include "folder_walk.hpp"
#include "outage_log.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr double kFirstWaitSeconds = 0.05, kLongestWaitSeconds = 2;
constexpr double kQuietOutageSeconds = 5;  // before the log hears of an outage
constexpr double kNever = std::numeric_limits<double>::infinity();

struct OpenFile {
  int fd = -1;
  uint64_t size = 0;  // bytes
  OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
};

// A pipe or a device named like an image would be read forever.
[[noreturn]] void throw_irregular(const std::string& path) {
  throw DataError(
      "[files] {}: is no regular file. Hint: a folder, pipe or device is where "
      "data should be",
      path);
}

// False with errno set. Without blocking: a pipe would wait for whoever writes.
bool open_regular(const std::string& path, OpenFile& file) {
  if (path.find('\0') != std::string::npos)  // the system would cut it there
    throw DataError(
        "[files] {}: the name holds a NUL, which no file's does. Hint: a list "
        "of find -print0 goes to predict as - or @FILE",
        printable(path));
  file.fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat info {};
  const int rc =
      file.fd >= 0 ? ::fstat(file.fd, &info) : ::stat(path.c_str(), &info);
  if (rc == 0 && !S_ISREG(info.st_mode)) throw_irregular(path);
  file.size = static_cast<uint64_t>(info.st_size);
  return rc == 0 && file.fd >= 0;
}

class LocalStore final : public Store {
 public:
  explicit LocalStore(double retry_s)
      : retry_s_(retry_s),
        outages_("files", std::min(kQuietOutageSeconds, retry_s / 4), kNever) {}

  void read(const std::string& path, uint64_t offset, uint64_t count,
            std::vector<std::byte>& into, const ReadOptions& options) override {
    into.resize(count);
    patiently(path, options, [&] {
      const auto file = opened(path);
      const auto got = file ? read_at(file->fd, offset, into) : -1;
      if (got < 0) return false;
      into.resize(static_cast<size_t>(got));
      return true;
    });
  }

  void read_whole(const std::string& path, std::vector<std::byte>& into,
                  const ReadOptions& options) override {
    patiently(path, options, [&] {
      OpenFile file;
      if (!open_regular(path, file)) return false;
      if (file.size > kLargestWhole)
        throw DataError(
            "[files] {}: has {}, more than is read at once. Hint: is this an "
            "image?",
            path, readable_bytes(static_cast<double>(file.size)));
      into.resize(file.size);
      const auto got = read_at(file.fd, 0, into);
      if (got < 0) return false;
      // It may have shrunk while it was read.
      into.resize(static_cast<size_t>(got));
      return true;
    });
  }

  using Store::list;
  std::vector<StoredFile> list(const std::string& path,
                               const std::function<void()>& tick) override {
    return files_below(path, tick);
  }

  bool exists(const std::string& path) override {
    std::error_code error;
    return fs::exists(path, error);
  }

 private:
  // Calls `attempt` until it returns true. False means errno: what may pass is
  // tried again.
  template <class Attempt>
  void patiently(const std::string& path, const ReadOptions& options,
                 Attempt attempt) {
    double since = 0, wait_s = kFirstWaitSeconds;
    while (!attempt()) {
      const int error = errno;
      const bool gone =
          options.was_there && (error == ENOENT || error == ENOTDIR);
      if (!gone && !may_pass(error)) throw_unreadable("files", path, error);
      forget(path);  // a stale handle stays stale
      const double now = now_s();
      if (since == 0) since = now;
      if (now - since >= retry_s_ || options.stop.stop_requested())
        give_up(path, error, gone);
      outages_.failed(since, std::string(std::strerror(error)) +
                                 ". Trying again for up to " +
                                 readable_s(retry_s_) +
                                 " (data.retry_s). Hint: see dmesg, the mounts "
                                 "and the file server");
      pause(std::min(wait_s, since + retry_s_ - now), options.stop);
      wait_s = std::min(2 * wait_s, kLongestWaitSeconds);
    }
    outages_.worked();
  }

  [[noreturn]] static void give_up(const std::string& path, int error,
                                   bool gone) {
    if (!gone) throw_unreadable("files", path, error);
    throw OutageError(
        "[files] {}: was there when the run began, and is gone. Hint: did a "
        "mount go away? Start again when it is back",
        path);
  }

  std::shared_ptr<OpenFile> opened(const std::string& path) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = open_.find(path); found != open_.end())
        return found->second;
    }
    const std::unique_lock lock(mutex_);
    if (const auto found = open_.find(path); found != open_.end())
      return found->second;
    const auto file = std::make_shared<OpenFile>();
    if (!open_regular(path, *file)) return nullptr;
    return open_[path] = file;
  }

  void forget(const std::string& path) {
    const std::unique_lock lock(mutex_);
    open_.erase(path);
  }

  const double retry_s_;
  OutageLog outages_;
  std::shared_mutex mutex_;  // guards open_
  // Shared with whoever reads just now, so that a descriptor is never closed
  // under a read.
  std::unordered_map<std::string, std::shared_ptr<OpenFile>> open_;
};

}  // namespace

std::unique_ptr<Store> local_store(double retry_s) {
  return std::make_unique<LocalStore>(retry_s);
}

void read_in_pieces(Store& store, const std::string& path, uint64_t offset,
                    uint64_t count, std::vector<std::byte>& into) {
  constexpr uint64_t kPiece = 16 << 20;
  std::vector<std::byte> piece;
  into.clear();
  while (into.size() < count) {
    const uint64_t wanted = std::min(kPiece, count - into.size());
    store.read(path, offset + into.size(), wanted, piece);
    into.insert(into.end(), piece.begin(), piece.end());
    if (piece.size() < wanted) return;
  }
}

bool on_network_file_system(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  // statfs(2) and the file systems' headers.
  static constexpr std::array<uint32_t, 8> kNetwork = {0x6969,       // NFS
                                                       0x0BD00BD0,   // Lustre
                                                       0x47504653,   // GPFS
                                                       0xFF534D42,   // CIFS
                                                       0xFE534D42,   // SMB2
                                                       0x00C36400,   // Ceph
                                                       0x65735546,   // FUSE
                                                       0x19830326};  // BeeGFS
  return std::ranges::find(kNetwork, static_cast<uint32_t>(info.f_type)) !=
         kNetwork.end();
}

bool is_remote(const std::string& path) {
  return is_s3(path) || on_network_file_system(path);
}

}  // namespace chexnet
