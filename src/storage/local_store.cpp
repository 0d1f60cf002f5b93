#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/storage/store.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void cannot_walk(const std::string& path, int error) {
  if (may_pass(error)) throw_unreadable("images", path, error);
  throw DataError("[images] " + path + ": " + std::strerror(error) + ". Hint: check data.images");
}

std::string time_text(const timespec& t) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return std::to_string(std::int64_t{t.tv_sec} * kNanoseconds + t.tv_nsec);
}

StoredFile stored_file(const std::string& path, const struct stat& info) {
  return {path, static_cast<std::uint64_t>(info.st_size), time_text(info.st_mtim),
          std::to_string(info.st_dev) + "." + std::to_string(info.st_ino) + "." +
              time_text(info.st_ctim)};
}

// One walk through a folder and those below.
class Walk {
 public:
  explicit Walk(const std::function<void()>& tick) : tick_(tick) {}

  std::vector<StoredFile> files(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) cannot_walk(path, errno);
    if (S_ISREG(info.st_mode)) return {stored_file(path, info)};
    enter(path, info);
    return std::move(files_);
  }

 private:
  using Folder = std::pair<dev_t, ino_t>;

  void enter(const std::string& path, const struct stat& info) {
    const Folder folder(info.st_dev, info.st_ino);
    const bool loops = std::ranges::find(above_, folder) != above_.end();
    if (loops || ++names_[folder] > Store::kMostNames) return;
    above_.push_back(folder);
    for (const auto& name : names_in(path)) look_at(path + (path.ends_with('/') ? "" : "/") + name);
    above_.pop_back();
  }

  static std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (folder == nullptr && errno == EACCES) return names;  // lost+found
    if (folder == nullptr) cannot_walk(path, errno);
    for (;;) {
      errno = 0;
      const dirent* found = ::readdir(folder.get());
      if (found == nullptr) break;
      const std::string name = found->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) cannot_walk(path, errno);
    return names;
  }

  void look_at(const std::string& path) {
    tick_();
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      const bool dangles = errno == ENOENT || errno == ELOOP || errno == EACCES;
      if (!dangles) cannot_walk(path, errno);
      return;
    }
    const bool hidden = path[path.rfind('/') + 1] == '.';
    if (S_ISDIR(info.st_mode))
      enter(path, info);
    else if (!hidden && S_ISREG(info.st_mode))  // a pipe would block its reader for ever
      files_.push_back(stored_file(path, info));
  }

  const std::function<void()>& tick_;
  std::vector<Folder> above_;    // those that the present path leads through
  std::map<Folder, int> names_;  // under which a folder was listed
  std::vector<StoredFile> files_;
};

class LocalStore final : public Store {
 public:
  ~LocalStore() override {
    for (const auto& [path, fd] : open_) ::close(fd);
  }

  void read(const std::string& path, std::uint64_t offset, std::uint64_t count,
            std::vector<std::byte>& into) override {
    into.resize(count);
    const auto got = read_at(descriptor(path), offset, into);
    if (got < 0) throw_unreadable("files", path, errno);
    into.resize(static_cast<std::size_t>(got));
  }

  void read_whole(const std::string& path, std::vector<std::byte>& into) override {
    read_bytes(path, into);
  }

  using Store::list;
  std::vector<StoredFile> list(const std::string& path,
                               const std::function<void()>& tick) override {
    return Walk(tick).files(path);
  }

  bool exists(const std::string& path) override {
    std::error_code error;
    return fs::exists(path, error);
  }

 private:
  int descriptor(const std::string& path) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = open_.find(path); found != open_.end()) return found->second;
    }
    const std::unique_lock lock(mutex_);
    if (const auto found = open_.find(path); found != open_.end()) return found->second;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw_unreadable("files", path, errno);
    return open_[path] = fd;
  }

  std::shared_mutex mutex_;                    // guards open_
  std::unordered_map<std::string, int> open_;  // path -> descriptor
};

}  // namespace

std::unique_ptr<Store> local_store() { return std::make_unique<LocalStore>(); }

void read_in_pieces(Store& store, const std::string& path, std::uint64_t offset,
                    std::uint64_t count, std::vector<std::byte>& into) {
  constexpr std::uint64_t kPiece = 16 << 20;
  std::vector<std::byte> piece;
  into.clear();
  while (into.size() < count) {
    const std::uint64_t wanted = std::min(kPiece, count - into.size());
    store.read(path, offset + into.size(), wanted, piece);
    into.insert(into.end(), piece.begin(), piece.end());
    if (piece.size() < wanted) return;
  }
}

bool on_network_file_system(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  // statfs(2) and the file systems' own headers.
  static constexpr std::array<std::uint32_t, 8> kNetwork = {0x6969,       // NFS
                                                            0x0BD00BD0,   // Lustre
                                                            0x47504653,   // GPFS
                                                            0xFF534D42,   // CIFS
                                                            0xFE534D42,   // SMB2
                                                            0x00C36400,   // Ceph
                                                            0x65735546,   // FUSE
                                                            0x19830326};  // BeeGFS
  return std::ranges::find(kNetwork, static_cast<std::uint32_t>(info.f_type)) != kNetwork.end();
}

}  // namespace chexnet
