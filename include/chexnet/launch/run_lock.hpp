// One run at a time writes a run folder: an flock on <folder>/.lock for the
// life of this object, taken by rank 0.
#pragma once

#include <filesystem>
#include <optional>

namespace chexnet {

class RunLock {
 public:
  // CheckpointError when another process still holds it after `timeout_s`; the
  // text names that process and host.
  explicit RunLock(const std::filesystem::path& folder, double timeout_s = 0);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // The lock is still this object's. Where somebody removed its file it is
  // taken again; CheckpointError as above where another process has done so.
  void require();

 private:
  void take(double timeout_s);
  std::filesystem::path folder_;
  int fd_ = -1;
};

// Whether a process holds the lock of `folder`, as far as locks reach:
// processes of this host, on some network file systems of all hosts. Nothing
// where it cannot be known.
std::optional<bool> run_is_locked(const std::filesystem::path& folder);

}  // namespace chexnet
