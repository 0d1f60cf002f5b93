// The folder of a run and the decision whether this start is fresh or a resume.
// Files belong to rank 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"

namespace chexnet {

class AfterCheckpoint;

enum class Resume {
  kNo,
  kYes,
  kAuto
};  // kAuto starts afresh where there is no checkpoint

// run.dir; where that is empty, runs/<run.name>.
std::filesystem::path run_folder_of(const Config& config);

// train.batch; where it is left to the run (auto), what the run in the folder
// chose; 0 where none did yet.
int64_t batch_of_run(const Config& config);

// CheckpointError: a start without --resume finds a run in the folder.
[[noreturn]] void refuse_used_folder(const std::filesystem::path& folder);

// Throws what RunFolder would, as far as it shows without taking the folder, so
// that no rank is started for it. Rank 0 says who else has the folder.
void check_takes_run(const Config& config, Resume resume);

// ConfigError where a run with `before` may not go on with `now`. For its text:
// the file `place` holds `before`, the config of a `whose` ("run",
// "checkpoint").
void refuse_another_config(const Config& before, const Config& now,
                           const std::string& place, const std::string& whose);

class RunFolder {
 public:
  // Collective. Creates, locks and decides on rank 0. Errors: an existing run
  // without a resume (CheckpointError), a resume without a checkpoint or with
  // broken ones only (CheckpointError), a config that may not change
  // (ConfigError with the differences), a folder of another user that everybody
  // may write, or `log` or `checkpoints` that are another user's link
  // (CheckpointError).
  RunFolder(const Config& config, Resume resume, Communicator& comm);
  ~RunFolder();

  // Rank 0, once data and weights proved good: from here on the folder holds a
  // run. A start that failed before removes what it made, so it does not block
  // the next one.
  void claim(const Config& config) const;
  // Rank 0: the store holds a checkpoint of this run.
  void checkpoint_written();
  // The end of a run that went well, or was asked to stop: waits for
  // run.after_checkpoint, as AfterCheckpoint::finish(). Collective.
  void finish_commands(Communicator& comm,
                       const std::function<bool(double waited_s)>& may_wait);
  // Of run.after_checkpoint; nothing without it, and but on rank 0.
  std::optional<int64_t> failed_commands() const;

  const std::filesystem::path& path() const { return path_; }
  // Where to resume from; the same on all ranks.
  const std::optional<std::filesystem::path>& checkpoint() const {
    return checkpoint_;
  }
  // train.batch of the run that is resumed; 0 for a new one. The same on all
  // ranks.
  int64_t batch() const { return batch_; }
  CheckpointStore& store() { return *store_; }  // rank 0 only
  // RunLock::require(); before anything is replaced. Rank 0 only.
  void require_lock() { lock_->require(); }
  // Whether the data of this config were read before, by the run that is
  // resumed or by the ranks that our parent starts again. The same on all
  // ranks.
  bool has_seen_data() const { return has_seen_data_; }
  bool stop_file_exists() const;

 private:
  // What a start without claim() removes again.
  struct Before;
  class Unclaimed;

  void prepare(const Config& config, Resume resume);
  std::filesystem::path path_;
  std::optional<std::filesystem::path> checkpoint_;
  int64_t batch_ = 0;
  bool has_seen_data_ = false;
  double timeout_s_ = 0;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<Unclaimed> unclaimed_;  // goes before the lock
  std::unique_ptr<CheckpointStore> store_;
  bool has_command_ = false;
  std::unique_ptr<AfterCheckpoint> after_checkpoint_;  // rank 0
};

}  // namespace chexnet
