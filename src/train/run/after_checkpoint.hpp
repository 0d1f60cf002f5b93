// run.after_checkpoint: a shell command beside training, on rank 0, after each
// checkpoint and once after the end. $1 is a view of the run folder as it was
// at that moment: links to its files, which nothing replaces or removes while
// the command reads them.
//
// One command at a time: whatever becomes due during one is one command after
// it.
// A failure is a warning and is counted; it never ends the run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace chexnet {

class AfterCheckpoint {
 public:
  // Of a start that was killed: their links keep checkpoints that this run
  // removes. `run` is locked by this process, here and below.
  static void remove_left_views(const std::filesystem::path& run);

  AfterCheckpoint(std::string command, const std::filesystem::path& run);
  // Kills a command that is still active.
  ~AfterCheckpoint();
  AfterCheckpoint(const AfterCheckpoint&) = delete;
  AfterCheckpoint& operator=(const AfterCheckpoint&) = delete;

  // On the thread that writes checkpoints, between two changes of them.
  void due();
  // Waits for the active command and the one after it, while `may_wait` allows
  // it after so many seconds; then kills it, which counts as a failure. A line
  // in the log every 30 s. No command starts afterwards.
  void finish(const std::function<bool(double waited_s)>& may_wait);
  int64_t failures() const;

 private:
  // A folder made for one command, removed after it; of a file system without
  // hard links the run folder itself.
  struct View {
    std::filesystem::path path, made;
  };
  View view();
  void work(const std::stop_token& stop);
  void run(const View& view, const std::stop_token& stop);

  const std::string command_;
  const std::filesystem::path run_, views_;
  int64_t views_made_ = 0;
  bool links_refused_ = false;
  mutable std::mutex mutex_;  // guards the next
  std::optional<View> next_;
  bool is_running_ = false;
  int64_t failures_ = 0;
  std::condition_variable_any changed_;
  std::jthread thread_;  // last: it uses all of them
};

}  // namespace chexnet
