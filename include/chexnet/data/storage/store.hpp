// Where bytes come from: the local file system (network mounts too) or an
// S3-compatible object store. Paths are file names or s3://bucket/key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace chexnet {

struct StoredFile {
  std::string path;
  uint64_t size = 0;  // bytes
  // Another one when the content is written anew. Local: time of writing in ns,
  // which copies of the file may keep. S3: the ETag.
  std::string version{};
  // Local: which file it is, and when its inode changed. Equal for all links to
  // one file; no copy has it. S3: empty.
  std::string inode{};
  // S3: LastModified, in a form whose texts sort by time. Local: empty.
  std::string modified{};
  bool operator==(const StoredFile&) const = default;
};

constexpr uint64_t kLargestWhole = uint64_t{1} << 30;  // of read_whole(), bytes

// Facts that the caller of a read knows.
struct ReadOptions {
  // The bytes are no longer needed: a read that is tried again throws.
  std::stop_token stop;
  // Found before, so that "no such file" means a mount went away.
  bool was_there = false;
};

// Any number of threads. What fails for a reason that may pass is tried again,
// with a warning once it lasts; then OutageError. AbsentError: no such file, no
// permission. DataError: it is no file, is larger than kLargestWhole, or came
// wrong.
class Store {
 public:
  virtual ~Store() = default;
  // Fills `into` with bytes [offset, offset + count); fewer at the end of the
  // file.
  virtual void read(const std::string& path, uint64_t offset, uint64_t count,
                    std::vector<std::byte>& into,
                    const ReadOptions& options = {}) = 0;
  virtual void read_whole(const std::string& path, std::vector<std::byte>& into,
                          const ReadOptions& options = {}) = 0;
  // The files below a folder or key prefix, or the one file of that name;
  // Calls `tick` for each. Hidden files are skipped. Links are followed, but
  // never back into a folder that the path leads through, and no folder is
  // listed under more than kMostNames names, so loops end.
  virtual std::vector<StoredFile> list(const std::string& path,
                                       const std::function<void()>& tick) = 0;
  std::vector<StoredFile> list(const std::string& path) {
    return list(path, [] {});
  }
  virtual bool exists(const std::string& path) = 0;

  static constexpr int kMostNames = 16;
};

// Files stay open between ranged reads. A read that fails for a reason that may
// pass is tried again for `retry_s`.
std::unique_ptr<Store> local_store(double retry_s = 0);

// Bytes [offset, offset + count), read in pieces, so that no more memory is
// taken than there are bytes, whatever a header claims. Fewer at the end of the
// file.
void read_in_pieces(Store& store, const std::string& path, uint64_t offset,
                    uint64_t count, std::vector<std::byte>& into);

// NFS, Lustre, GPFS, SMB, Ceph, BeeGFS and whatever comes through FUSE.
bool on_network_file_system(const std::string& path);
// In an object store or on such a file system.
bool is_remote(const std::string& path);

}  // namespace chexnet
