// One run at a time writes a run folder: an flock on <folder>/.lock for the life of this object,
// taken by rank 0.
#pragma once

#include <filesystem>

namespace chexnet {

class RunLock {
 public:
  // CheckpointError when another process holds it; the text names that process and host.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_;
};

}  // namespace chexnet
