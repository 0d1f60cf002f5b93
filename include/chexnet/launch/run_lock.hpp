// One run at a time writes a run folder: an flock on <folder>/.lock for the life of this object,
// taken by rank 0.
#pragma once

#include <filesystem>

namespace chexnet {

class RunLock {
 public:
  // CheckpointError when another process still holds it after `patience_s`; the text names that
  // process and host.
  explicit RunLock(const std::filesystem::path& folder, double patience_s = 0);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_;
};

}  // namespace chexnet
