#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/storage/store.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

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

  std::vector<StoredFile> list(const std::string& path) override {
    std::vector<StoredFile> files;
    std::error_code error;
    if (fs::is_regular_file(path, error)) return {{path, fs::file_size(path)}};
    fs::recursive_directory_iterator it(path,
                                        fs::directory_options::follow_directory_symlink |
                                            fs::directory_options::skip_permission_denied,
                                        error);
    if (error)
      throw DataError("[images] " + path + ": " + error.message() + ". Hint: check data.images");
    for (const auto end = fs::recursive_directory_iterator(); it != end; it.increment(error)) {
      if (error)
        throw DataError("[images] " + path + ": " + error.message() +
                        ". Hint: check the file system");
      if (it->path().filename().string().starts_with('.') || it->is_directory(error)) continue;
      const auto size = it->file_size(error);
      files.push_back({it->path().string(), error ? 0 : size});
    }
    return files;
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
