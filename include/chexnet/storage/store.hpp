// Where bytes come from: the local file system (network mounts too) or an S3-compatible object
// store. Paths are file names or s3://bucket/key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace chexnet {

struct StoredFile {
  std::string path;
  std::uint64_t size = 0;  // bytes
};

// Any number of threads. DataError names path, offset and reason.
class Store {
 public:
  virtual ~Store() = default;
  // Fills `into` with bytes [offset, offset + count); fewer at the end of the file.
  virtual void read(const std::string& path, std::uint64_t offset, std::uint64_t count,
                    std::vector<std::byte>& into) = 0;
  virtual void read_whole(const std::string& path, std::vector<std::byte>& into) = 0;
  // The files below a folder or key prefix, or the one file of that name. Hidden files are passed
  // over.
  virtual std::vector<StoredFile> list(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
};

// Files stay open between ranged reads.
std::unique_ptr<Store> local_store();

// NFS, Lustre, GPFS, SMB, Ceph, BeeGFS and whatever comes through FUSE.
bool on_network_file_system(const std::string& path);

inline bool is_s3(const std::string& path) { return path.starts_with("s3://"); }

}  // namespace chexnet
