// The parent lives through several starts of the ranks:
//
//   start -> wait -> code explained by a post-mortem, or by its meaning?
//                        no: write one
//                    stop asked for, or no restart left?
//                        yes: last line, return
//                    pause (storage may come back)
//                 -> start again with --resume auto, on the hosts that answer
//
// It holds no MPI and no GPU, so whatever kills ranks leaves it alive to say
// what happened. Its exit code is that of the post-mortem where there is one:
// mpirun's own is of whichever rank died first in its eyes.
#include "parent.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>
#include <vector>

#include "chexnet/comm/timeouts.hpp"
#include "chexnet/comm/watch/postmortem.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launched_ranks.hpp"
#include "chexnet/launch/launcher_codes.hpp"
#include "chexnet/launch/machine/host_checks.hpp"
#include "chexnet/launch/restart_policy.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/report/prometheus_file.hpp"
#include "chexnet/train/run/run_folder.hpp"
#include "restart_hosts.hpp"

namespace chexnet {
namespace {

// Ranks end themselves and their launcher within seconds of a post-mortem; this
// is for the rest.
constexpr double kTimeAfterPostmortem_s = 8;
constexpr double kLateOutput_s = 4;
// Exit codes of commands that a signal ended, less the signal.
constexpr int kSignalBase = 128;

bool is_by_signal(int code) {
  return code > kSignalBase && code < kSignalBase + 32;
}

// Of another run there is none.
std::optional<PostMortemNote> own_postmortem(const OwnRun& run,
                                             const ParentTask& task) {
  return run.is_ours() ? read_postmortem(task.run_folder) : std::nullopt;
}

// What MPI lacks for ranks that share a host: Open MPI keeps its help on it to
// itself where mpirun is to be quiet, and MPICH ends by SIGBUS.
std::string shared_memory_remark(const SelfLaunch& launch) {
  if (launch.alone) return "";
  const auto check =
      shared_memory_check(launch.layout.ranks / launch.layout.hosts);
  if (!check || check->level != Level::kFail) return "";
  return formatted("; {} has {}. Hint: {}", check->name, check->text,
                   check->advice);
}

// The launcher ended and no rank could say why.
PostMortemNote launcher_note(const SelfLaunch& launch, int exit_code,
                             const OwnRun& run, const ParentTask& task) {
  PostMortem report;
  report.time = utc_time();
  report.cause = "launcher";
  report.exit_code = static_cast<int>(ExitCode::kDevice);
  report.what =
      std::string(launch.alone ? "the process" : "mpirun") +
      " ended with exit code " + std::to_string(exit_code) +
      (is_by_signal(exit_code)
           ? " (signal " + std::to_string(exit_code - kSignalBase) +
                 " ended it or a rank)"
           : "") +
      " and no rank could say why; the lines above are all that is known" +
      shared_memory_remark(launch);
  if (!run.is_ours())
    return {report.what + "; " + task.run_folder.string() +
                " holds another run, which is as it was",
            report.exit_code};
  report.checkpoint = last_checkpoint(task.run_folder);
  report.resume = task.resume_command;
  std::error_code error;
  if (std::filesystem::exists(task.run_folder, error) && run.may_be_written()) {
    try {
      write_postmortem(task.run_folder, report);
    } catch (const Error& e) {
      log_warning(e.what());
    }
  }
  return {report.sentence(), report.exit_code};
}

// mpirun waits for minutes, or without end, for a host that no packet reaches,
// and here where it ran out of descriptors.
class LaunchDeadline {
 public:
  LaunchDeadline(const SelfLaunch& launch, const ParentTask& task,
                 double timeout_s)
      : limit_s_(std::max(timeout_s, kLeastStart_s)),
        deadline_(limit_s_, now_s()),
        lock_(task.run_folder / ".lock"),
        locked_before_(written_at(lock_)),
        waits_(launch.first_here && !launch.alone) {}

  double limit_s() const { return limit_s_; }
  // To be asked once a second.
  bool is_over(bool ranks_are_here) {
    const double waited_s = deadline_.waited_s(now_s());
    // Rank 0 may have been placed elsewhere.
    if (waits_ && (ranks_are_here || written_at(lock_) != locked_before_))
      waits_ = false;
    return waits_ && waited_s > limit_s_;
  }

 private:
  using Time = std::filesystem::file_time_type;
  static Time written_at(const std::filesystem::path& file) {
    std::error_code absent;
    const Time time = std::filesystem::last_write_time(file, absent);
    return absent ? Time::min() : time;
  }

  double limit_s_;
  CollectiveDeadline deadline_;
  std::filesystem::path lock_;
  Time locked_before_;
  bool waits_;
};

// Ranks that are stopped as one cannot say so, and may be meant to be: a line
// tells it, and nothing ends.
class StoppedRanks {
 public:
  // Without a launcher (SelfLaunch::alone) no process is known as a rank.
  StoppedRanks(const SelfLaunch& launch, double timeout_s)
      : looks_(!launch.alone),
        timeout_s_(timeout_s),
        since_s_(now_s()),
        suspension_(since_s_) {}

  // Whether ranks have been seen on this host. To be called once a second.
  bool look() {
    if (looks_) look_at_ranks();
    return !ranks_.empty();
  }

 private:
  void look_at_ranks() {
    const double now = now_s();
    since_s_ += suspension_.look(now);
    if (ranks_.empty()) ranks_ = ranks_below(getpid());
    if (ranks_.empty() || !std::ranges::all_of(ranks_, is_stopped)) {
      since_s_ = now;
      said_ = false;
    } else if (!said_ && now - since_s_ > timeout_s_) {
      tell(now - since_s_);
    }
  }

  void tell(double stopped_s) {
    ranks_ = ranks_below(getpid());  // some may have started since
    if (ranks_.empty() || !std::ranges::all_of(ranks_, is_stopped)) return;
    said_ = true;
    std::string processes;
    for (const pid_t rank : ranks_) processes += " " + std::to_string(rank);
    log_warning("[launch] all ranks on this host have been stopped for " +
                fixed(stopped_s, 0) +
                " s (SIGSTOP, or a debugger). Hint: `kill -CONT" + processes +
                "` lets them go on");
  }

  bool looks_;
  double timeout_s_, since_s_;
  SuspensionMeter suspension_;
  std::vector<pid_t> ranks_;
  bool said_ = false;
};

// The code is none of ours, and no rank wrote why.
bool is_launchers_own(int code, const OwnRun& run, const ParentTask& task) {
  return find_exit_meaning(code) == nullptr && !own_postmortem(run, task);
}

// For status and the alerts, which else call such a run aborted.
void record_stop(const OwnRun& run, const ParentTask& task,
                 const std::string& reason) {
  if (!run.begun() || !run.may_be_written()) return;
  try {
    write_stop_event(task.run_folder, reason);
  } catch (const std::exception& e) {
    log_warning(e.what());
  }
}

void explain_stop(const OwnRun& run, const ParentTask& task) {
  PostMortem report;
  report.what =
      "[launch] stopped on request, or the job was canceled: a signal ended "
      "the ranks or mpirun";
  if (run.is_ours()) report.checkpoint = last_checkpoint(task.run_folder);
  report.resume = task.resume_command;
  log_warning(run.is_ours() ? report.sentence() : report.what);
  record_stop(run, task, "stopped by a signal that ended ranks or mpirun");
}

void explain_stuck_launcher(const OwnRun& run, const ParentTask& task,
                            const SelfLaunch& launch, double limit_s) {
  const std::string what =
      "mpirun did not start the ranks within " + fixed(limit_s, 0) + " s";
  if (launch.layout.hosts > 1)
    explain_late_start(
        run, task, what + ": the network between the hosts does not pass data",
        kUnreachedHint);
  else
    explain_late_start(run, task, what + " on this host",
                       "mpirun's own lines above; are `ulimit -n` (256 or "
                       "more), TMPDIR and /dev/shm large enough?");
}

void announce_restart(const std::string& checkpoint, int left, double pause_s,
                      const std::optional<PostMortemNote>& note) {
  log_warning("[launch] starting the ranks again from " +
              (checkpoint.empty() ? std::string("the beginning") : checkpoint) +
              " (" + std::to_string(left) + " restarts left)" +
              (pause_s > 0 ? " in " + fixed(pause_s, 0) + " s" : "") +
              (note ? ": " + note->sentence : std::string()));
}

// Ranks that go on, and know that they do. `taken`: the run that the start
// before has begun; where there is none, or another by now, the ranks find that
// out as the first ones would have.
void prepare_restart(SelfLaunch& launch, int restarts, const OwnRun& run,
                     const OwnRun::Stamp& taken) {
  if (taken && taken == run.begun()) add_resume(launch.arguments);
  run.remove_old_stop_file();
  setenv(kRestartsVariable, std::to_string(restarts).c_str(), 1);
  if (restarts == 1) launch.forwarded.emplace_back(kRestartsVariable);
}

}  // namespace

void add_resume(std::vector<std::string>& words) {
  if (!has_option(words, "--resume"))
    words.insert(words.end(), {"--resume", "auto"});
}

void explain_late_start(const OwnRun& run, const ParentTask& task,
                        const std::string& what, const std::string& hint) {
  log_error("[launch] " + what + ". Hint: " + hint +
            " Else raise launch.timeout_s");
  if (!run.may_be_written() || read_postmortem(task.run_folder)) return;
  PostMortem report;
  report.time = utc_time();
  report.cause = "start";
  report.exit_code = static_cast<int>(ExitCode::kHang);
  report.what = what;
  report.checkpoint = last_checkpoint(task.run_folder);
  report.resume = task.resume_command;
  try {
    std::filesystem::create_directories(task.run_folder);
    write_postmortem(task.run_folder, report);
  } catch (const std::exception& e) {
    log_warning(e.what());
  }
}

int run_ranks(SelfLaunch whole, const ParentTask& task, double timeout_s) {
  SelfLaunch launch = whole;
  const OwnRun run(task);
  RestartPolicy policy(task.restarts);
  // For the whole of it: a signal between two starts asks for a stop too.
  ParentSignals signals;
  signals.keep();
  for (int starts = 1;; ++starts) {
    if (run.may_be_written()) put_postmortem_aside(task.run_folder);
    double explained_s = 0;
    bool never_started = false;
    LaunchDeadline start(launch, task, timeout_s);
    StoppedRanks stopped(launch, timeout_s);
    const auto overdue = [&] {
      const bool ranks_are_here = stopped.look();
      if (start.is_over(ranks_are_here) && !never_started) {
        never_started = true;
        explain_stuck_launcher(run, task, launch, start.limit_s());
      }
      if (never_started) return true;
      if (!own_postmortem(run, task)) return false;
      if (explained_s == 0) explained_s = now_s();
      return now_s() - explained_s > kTimeAfterPostmortem_s;
    };
    const int code = code_from_launcher(
        run_as_parent(start_command(launch), signals,
                      {.ends_it = overdue,
                       .gives_stdin = task.reads_stdin,
                       .is_filter = task.run_folder.empty()}),
        launch.mpirun.family);
    if (never_started && !own_postmortem(run, task))
      return static_cast<int>(ExitCode::kHang);
    const bool stop_before = signals.asked_to_stop();
    // The first seconds of mpirun and the ranks are before anybody listens to a
    // signal; and mpirun calls its own end by TERM an error: that of a second
    // request, or of a canceled job, in which each process gets one.
    if (stop_before &&
        (is_by_signal(code) || is_launchers_own(code, run, task))) {
      explain_stop(run, task);
      return static_cast<int>(ExitCode::kRequeue);
    }
    if (task.run_folder.empty() || !RestartPolicy::may_pass(code)) return code;
    auto note = own_postmortem(run, task);
    if (!note && !RestartPolicy::is_explained(code))
      note = launcher_note(launch, code, run, task);
    const OwnRun::Stamp taken = run.begun();
    if (note && taken) renew_prometheus_file(task.run_folder);
    const int reported = note ? note->exit_code : code;
    const std::string checkpoint =
        taken ? last_checkpoint(task.run_folder) : std::string();
    const bool again = !stop_before && policy.again(code, checkpoint);
    // Daemons on other hosts are killed seconds after the ranks ended and still
    // write; what people should read comes last.
    if (note && (again || launch.layout.hosts > 1))
      signals.stop_within(kLateOutput_s);
    if (!again) {
      if (note) log_error(note->sentence);
      return reported;
    }
    if (!run.is_ours()) {  // as rank 0 would have, had it come so far
      if (note) log_error(note->sentence);
      refuse_used_folder(task.run_folder);
    }
    const double pause_s = RestartPolicy::pause_s(code);
    announce_restart(checkpoint, policy.left(), pause_s, note);
    if (signals.stop_within(pause_s) || run.stop_is_requested()) {
      log_warning(
          "[launch] a stop was requested between two starts of the ranks: none "
          "follows");
      record_stop(run, task, "stopped between two starts");
      return static_cast<int>(ExitCode::kRequeue);
    }
    prepare_restart(whole, starts, run, taken);
    auto next = on_hosts_left(whole, task, timeout_s, signals);
    if (!next) return reported;
    launch = std::move(*next);
  }
}

}  // namespace chexnet
