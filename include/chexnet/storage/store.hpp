// Where bytes come from: the local file system (network mounts too) or an S3-compatible object
// store. Paths are file names or s3://bucket/key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace chexnet {

struct StoredFile {
  std::string path;
  std::uint64_t size = 0;  // bytes
  // Another one when the content is written anew. Local: time of writing in ns, which copies of the
  // file may keep. S3: the ETag.
  std::string version{};
  // Local: which file it is, and when its inode changed. Equal for all links to one file; no copy
  // has it. S3: empty.
  std::string inode{};
  bool operator==(const StoredFile&) const = default;
};

// Any number of threads. DataError names path, offset and reason.
class Store {
 public:
  virtual ~Store() = default;
  // Fills `into` with bytes [offset, offset + count); fewer at the end of the file.
  virtual void read(const std::string& path, std::uint64_t offset, std::uint64_t count,
                    std::vector<std::byte>& into) = 0;
  virtual void read_whole(const std::string& path, std::vector<std::byte>& into) = 0;
  // The files below a folder or key prefix, or the one file of that name; `tick` hears of each.
  // Hidden files are passed over. Links are followed, but never back into a folder that the path
  // leads through, and no folder is listed under more than kMostNames names, so loops end.
  virtual std::vector<StoredFile> list(const std::string& path,
                                       const std::function<void()>& tick) = 0;
  std::vector<StoredFile> list(const std::string& path) {
    return list(path, [] {});
  }
  virtual bool exists(const std::string& path) = 0;

  static constexpr int kMostNames = 16;
};

// Files stay open between ranged reads.
std::unique_ptr<Store> local_store();

// Bytes [offset, offset + count), asked for in pieces, so that no more memory is taken than there
// are bytes, whatever a header claims. Fewer at the end of the file.
void read_in_pieces(Store& store, const std::string& path, std::uint64_t offset,
                    std::uint64_t count, std::vector<std::byte>& into);

// NFS, Lustre, GPFS, SMB, Ceph, BeeGFS and whatever comes through FUSE.
bool on_network_file_system(const std::string& path);

inline bool is_s3(const std::string& path) { return path.starts_with("s3://"); }

}  // namespace chexnet
