// One run at a time writes a run folder: an flock on <folder>/.lock for the
// life of this object, taken by rank 0.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace chexnet {

class RunLock {
 public:
  // CheckpointError when another process still holds it after `timeout_s`; the
  // text names that process and host.
  explicit RunLock(const std::filesystem::path& folder, double timeout_s = 0);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // The lock is still this object's, and the folder the one of then. Where
  // somebody removed the lock file alone it is taken again; CheckpointError
  // where another process has taken it, also if that has ended, or where
  // another folder has the name.
  void require();

 private:
  void take(double timeout_s);
  void close_all();
  std::filesystem::path folder_;
  int fd_ = -1;
  int folder_fd_;  // kept open: no other folder gets its number meanwhile
};

// The process that took the lock of `folder` last, as in "process 7 on node1";
// empty where that is this one, or is not known.
std::string other_owner(const std::filesystem::path& folder);

// The process that took the lock of `folder` last, where it is of this host and
// stopped by a signal (SIGSTOP, Ctrl-Z); 0: it is not.
int stopped_owner(const std::filesystem::path& folder);

// Whether a process holds the lock of `folder`, as far as locks reach:
// processes of this host, on some network file systems of all hosts. Nothing
// where it cannot be known.
std::optional<bool> run_is_locked(const std::filesystem::path& folder);

}  // namespace chexnet
