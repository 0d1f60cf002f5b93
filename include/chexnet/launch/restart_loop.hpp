// Whether ranks that ended are started again, when and on which hosts. It acts
// on its arguments, so that a test has a table of ends; for real ranks these
// are RankProcesses (launch) and FolderRecords (train/run).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace chexnet {

struct RankEnd {
  // As the ranks meant it, or one of the launcher.
  int code = 0;
  // False: they did not start in time, which the records say.
  bool in_time = true;
  // They ended, but the launcher did not, and was killed: the code is not
  // theirs.
  bool launcher_hung = false;
};

// The ranks of one command, start after start.
class RankStarts {
 public:
  virtual ~RankStarts() = default;

  // Starts them and waits for their end.
  virtual RankEnd run() = 0;
  // A sentence about the end with `code`, where no rank said why.
  virtual std::string end_text(int code) const = 0;
  // By a signal, so far.
  virtual bool asked_to_stop() const = 0;
  // Waits; true as soon as a signal asks to stop, or if one did before.
  virtual bool stop_within(double seconds) = 0;
  virtual bool on_several_hosts() const = 0;
  // The next run() is restart number `restart`, on the hosts that answer.
  // `resumes`: the ranks go on with their run. False, and an error in the log:
  // too few hosts answer.
  virtual bool prepare(int restart, bool resumes) = 0;
};

// Why ranks ended, for a person, and the exit code that says so.
struct EndNote {
  std::string sentence;
  int exit_code = 0;
};

// The folder of the run that ranks were started for, as their parent sees it.
// It may hold another run, if a start ended before its rank 0 looked: the
// parent writes nothing there.
class RunRecords {
 public:
  virtual ~RunRecords() = default;

  // Without them no end is explained, and none is followed by a start.
  virtual bool exist() const = 0;
  // The run is the one that this command began or was told to go on with.
  virtual bool are_ours() const = 0;
  // CheckpointError: they are of another run.
  [[noreturn]] virtual void refuse() const = 0;
  // A mark of the run that ranks of this command began or go on with; another
  // one after each start that takes the folder. None: they have begun none.
  using Mark = std::optional<std::pair<uint64_t, int64_t>>;
  virtual Mark begun() const = 0;
  // The newest one's name; empty: none.
  virtual std::string checkpoint() const = 0;
  // Images of a step; 0: nobody has chosen.
  virtual int64_t batch() const = 0;

  // Before a start: the post-mortem of the one before.
  virtual void put_aside() = 0;
  virtual std::optional<EndNote> postmortem() const = 0;
  // With which code the ranks of the last start ended the run in order, as far
  // as they wrote it down.
  virtual std::optional<int> end_code() const = 0;
  // Where no rank wrote one. `what` happened.
  virtual EndNote explain(const std::string& what) = 0;
  // `what` did not start in time, and `hint` what to check first.
  virtual void explain_late_start(const std::string& what,
                                  const std::string& hint) = 0;
  // A signal requested a stop, and ranks died before they could say so.
  virtual void explain_stop() = 0;
  // For `status` and alerts, which else call such a run aborted.
  virtual void record_stop(const std::string& reason) = 0;
  virtual void tell_monitors() = 0;

  // Since this command began.
  virtual bool stop_is_requested() const = 0;
  // An older one was meant for an earlier start.
  virtual void remove_old_stop_file() = 0;
};

class RestartLoop {
 public:
  // Two restarts at the same checkpoint are enough to know that a third would
  // end there too.
  static constexpr int kSamePlace = 2;

  // `restarts` at most. Both references outlive it.
  RestartLoop(int restarts, RankStarts& ranks, RunRecords& records)
      : left_(restarts), ranks_(ranks), records_(records) {}

  // The exit code for the user. With records, a failure is explained by one
  // sentence, the last line of output. Once.
  int run();

 private:
  // The code to end with; nothing: start again.
  std::optional<int> after(const RankEnd& end);
  bool is_worth_another(int code, const std::string& checkpoint);
  std::optional<int> prepare(int code, const std::optional<EndNote>& note,
                             const std::string& checkpoint,
                             const RunRecords::Mark& begun);

  int left_;
  int restarts_ = 0, at_same_ = 0;
  std::string checkpoint_ = "?";
  RankStarts& ranks_;
  RunRecords& records_;
};

}  // namespace chexnet
