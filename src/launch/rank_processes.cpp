#include "chexnet/launch/rank_processes.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/shell_words.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launched_ranks.hpp"
#include "chexnet/launch/launcher_codes.hpp"
#include "chexnet/launch/machine/host_checks.hpp"
#include "chexnet/launch/timeouts.hpp"
#include "restart_hosts.hpp"

namespace chexnet {
namespace {

// Ranks end themselves and their launcher within seconds of a post-mortem; this
// is for the rest.
constexpr double kTimeAfterPostmortem_s = 8;

// Room in /dev/shm and TMPDIR that MPI lacks for ranks on one host: a quiet
// mpirun of Open MPI does not report it, and MPICH ends by SIGBUS.
std::string shared_memory_remark(const SelfLaunch& launch) {
  if (launch.alone) return "";
  const auto check =
      shared_memory_check(launch.layout.ranks / launch.layout.hosts);
  if (!check || check->level != Level::kFail) return "";
  return formatted("; {} has {}. Hint: {}", check->name, check->text,
                   check->advice);
}

// mpirun waits for minutes, or without end, for a host that no packet reaches,
// and here where it has no descriptors left.
class LaunchDeadline {
 public:
  LaunchDeadline(const SelfLaunch& launch,
                 const std::filesystem::path& run_folder, double timeout_s)
      : limit_s_(std::max(timeout_s, kLeastStart_s)),
        deadline_(limit_s_, now_s()),
        lock_(run_folder / ".lock"),
        locked_before_(written_at(lock_)),
        waits_(launch.first_here && !launch.alone) {}

  double limit_s() const { return limit_s_; }
  // Call it once a second.
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

// How long something has been stopped, reported once.
class StopMeter {
 public:
  explicit StopMeter(double now) : since_s_(now) {}

  void skip(double suspended_s) { since_s_ += suspended_s; }
  // Seconds, where they are more than `limit_s` and not told yet; else 0.
  double to_tell_s(bool stopped, double now, double limit_s) {
    if (!stopped) *this = StopMeter(now);
    return !told_ && now - since_s_ > limit_s ? now - since_s_ : 0;
  }
  void set_told() { told_ = true; }

 private:
  double since_s_;
  bool told_ = false;
};

// A rank that ended, and its launcher could not tell.
struct EndedRank {
  pid_t process;
  std::string number;
  int wait_status;

  // The program's code for it.
  int code(MpiFamily launcher) const {
    return WIFSIGNALED(wait_status)
               ? static_cast<int>(ExitCode::kDevice)
               : code_from_launcher(WEXITSTATUS(wait_status), launcher);
  }
  std::string text() const {
    return formatted("rank {} (process {}) ended with {} {}", number, process,
                     WIFSIGNALED(wait_status) ? "signal" : "exit code",
                     WIFSIGNALED(wait_status) ? WTERMSIG(wait_status)
                                              : WEXITSTATUS(wait_status));
  }
};

// mpirun and the ranks that run on this host, as far as they cannot speak for
// themselves: those that are stopped, and all ranks once they have ended.
class RanksHere {
 public:
  // Without a launcher (SelfLaunch::alone) no process is known as a rank.
  RanksHere(const SelfLaunch& launch, double timeout_s)
      : looks_(!launch.alone),
        timeout_s_(timeout_s),
        running_s_(now_s()),
        ranks_stop_(running_s_),
        launcher_stop_(running_s_),
        suspension_(running_s_) {}

  // Call it once a second. `explained`: others name the ranks that are stopped.
  void look(pid_t launcher, bool explained) {
    if (!looks_) return;
    const double now = now_s();
    const double suspended_s = suspension_.look(now);
    ranks_stop_.skip(suspended_s);
    launcher_stop_.skip(suspended_s);
    running_s_ += suspended_s;
    if (std::ranges::none_of(ranks_, is_running)) find();
    if (std::ranges::any_of(ranks_, is_running)) running_s_ = now;
    const double ranks_s = ranks_stop_.to_tell_s(
        std::ranges::any_of(ranks_, is_stopped), now, timeout_s_);
    if (ranks_s > 0 && !explained) tell_stopped(ranks_s);
    const bool was_stopped =
        std::exchange(launcher_is_stopped_, is_stopped(launcher));
    if (launcher_is_stopped_ && !was_stopped) find();
    if (launcher_is_stopped_) note_ends();
    const double launcher_s =
        launcher_stop_.to_tell_s(launcher_is_stopped_, now, timeout_s_);
    if (launcher_s > 0) tell_stopped_launcher(launcher, launcher_s);
  }
  // A rank that cannot end, as the kernel makes it wait; after their end.
  std::optional<std::string> stuck_rank() const {
    constexpr int kLooks = 10;  // an end may wait for a moment
    constexpr auto kLookEvery = std::chrono::milliseconds(100);
    auto left = ranks_;
    for (int look = 0; look < kLooks && !left.empty(); ++look) {
      if (look > 0) std::this_thread::sleep_for(kLookEvery);
      std::erase_if(left, [](pid_t rank) { return !waits_in_kernel(rank); });
    }
    if (left.empty()) return std::nullopt;
    return formatted("rank {} (process {})", numbers_.at(left.front()),
                     left.front());
  }
  // The time of the last look().
  bool launcher_is_stopped() const { return launcher_is_stopped_; }
  // Of the ranks that ended while it was stopped, one that a signal ended, or
  // the first.
  const std::optional<EndedRank>& ended_rank() const { return ended_rank_; }
  // Whether some have been there.
  bool seen() const { return !ranks_.empty(); }
  // Since the last of them has ended; 0 while one is there.
  double ended_s() const { return seen() ? now_s() - running_s_ : 0; }

 private:
  // Keeps what it has found where none is left.
  void find() {
    auto found = ranks_below(getpid());
    if (found.empty()) return;
    ranks_ = std::move(found);
    for (const pid_t rank : ranks_)
      if (!numbers_.contains(rank)) numbers_[rank] = rank_number_of(rank);
  }

  // A launcher that is stopped waits for no rank, so they stay as zombies.
  void note_ends() {
    for (const auto& [rank, number] : numbers_) {
      const auto status = wait_status_of(rank);
      if (!status || (ended_rank_ && !WIFSIGNALED(*status))) continue;
      if (ended_rank_ && WIFSIGNALED(ended_rank_->wait_status)) return;
      ended_rank_ = {rank, number, *status};
    }
  }

  // Only a line in the log: somebody may have stopped them on purpose.
  void tell_stopped(double stopped_s) {
    find();  // some may have started since
    std::string processes;
    size_t stopped = 0;
    for (const pid_t rank : ranks_) {
      if (!is_stopped(rank)) continue;
      ++stopped;
      processes += " " + std::to_string(rank);
    }
    if (stopped == 0) return;
    ranks_stop_.set_told();
    const std::string who = stopped == ranks_.size()
                                ? "all"
                                : formatted("{} of {}", stopped, ranks_.size());
    log_warning(formatted(
        "[launch] {} ranks on this host have been stopped for {} s (SIGSTOP, "
        "or a debugger). Hint: `kill -CONT{}` lets them go on",
        who, fixed(stopped_s, 0), processes));
  }
  // The ranks go on until they wait for it, as one that prints much does.
  void tell_stopped_launcher(pid_t launcher, double stopped_s) {
    launcher_stop_.set_told();
    log_warning(formatted(
        "[launch] mpirun has been stopped for {} s (SIGSTOP, or a debugger): "
        "what ranks print does not come through. Hint: `kill -CONT {}` lets it "
        "go on",
        fixed(stopped_s, 0), launcher));
  }

  bool looks_;
  double timeout_s_, running_s_;
  StopMeter ranks_stop_, launcher_stop_;
  SuspensionMeter suspension_;
  std::vector<pid_t> ranks_;
  std::map<pid_t, std::string> numbers_;  // of all that were ever seen
  std::optional<EndedRank> ended_rank_;
  bool launcher_is_stopped_ = false;
};

// A launcher ends within a second of its ranks, on a busy machine within
// several.
double longest_launcher_end_s(double timeout_s) {
  constexpr double kLongest_s = 60;
  return std::min(timeout_s, kLongest_s);
}

void tell_launcher_hangs(pid_t launcher, double ended_s) {
  log_warning(formatted(
      "[launch] mpirun (process {}) has not ended {} s after its ranks: {}, so "
      "it is killed. What the ranks printed last may be missing above. Hint: "
      "how a training ended is in its run folder",
      launcher, fixed(ended_s, 0),
      is_stopped(launcher)
          ? "it is stopped (SIGSTOP, or a debugger)"
          : "it hangs, for example because a stranger keeps a connection to "
            "one of its ports"));
}

}  // namespace

void add_resume(std::vector<std::string>& words) {
  if (!has_option(words, "--resume"))
    words.insert(words.end(), {"--resume", "auto"});
}

RankProcesses::RankProcesses(SelfLaunch whole, const LaunchConfig& config,
                             Options options, RunRecords& records)
    : whole_(std::move(whole)),
      now_(whole_),
      config_(config),
      options_(std::move(options)),
      records_(records) {
  // For the whole loop: a signal between two starts requests a stop too.
  signals_.keep();
}

RankEnd RankProcesses::run() {
  double explained_s = 0;
  bool in_time = true;
  LaunchDeadline start(now_, options_.run_folder, config_.timeout_s);
  bool launcher_hangs = false;
  RanksHere ranks(now_, config_.timeout_s);
  const auto overdue = [&](pid_t launcher) {
    const bool explained = records_.postmortem().has_value();
    ranks.look(launcher, explained);
    if (start.is_over(ranks.seen()) && in_time) {
      in_time = false;
      explain_late_start(start.limit_s());
    }
    if (!in_time || launcher_hangs) return true;
    if (explained) {
      if (explained_s == 0) explained_s = now_s();
      return now_s() - explained_s > kTimeAfterPostmortem_s;
    }
    launcher_hangs =
        ranks.ended_s() > longest_launcher_end_s(config_.timeout_s);
    if (launcher_hangs) tell_launcher_hangs(launcher, ranks.ended_s());
    return launcher_hangs;
  };
  const int code = run_as_parent(start_command(now_), signals_,
                                 {.ends_it = overdue,
                                  .gives_stdin = options_.reads_stdin,
                                  .is_filter = !records_.exist()});
  // A rank that fails ends it by KILL (comm/watch/hard_exit.hpp): where it is
  // stopped, or the rank cannot end.
  const bool was_killed = signal_of(code) == SIGKILL &&
                          !signals_.asked_to_stop() && !launcher_hangs;
  const MpiFamily family = now_.mpirun.family;
  if (const auto stuck = was_killed ? ranks.stuck_rank() : std::nullopt) {
    log_error(formatted(
        "[launch] {} failed and cannot end: the kernel makes it wait, for "
        "storage or a driver that does not answer. Hint: the lines above say "
        "what it did last, `dmesg` may say what does not answer",
        *stuck));
    return {static_cast<int>(ExitCode::kHang), in_time};
  }
  if (!was_killed || !ranks.launcher_is_stopped())
    return {code_from_launcher(code, family), in_time, launcher_hangs};

  const auto& ended = ranks.ended_rank();
  log_warning(
      "[launch] mpirun was killed while it was stopped (SIGSTOP, or a "
      "debugger), as a rank does that fails" +
      (ended ? ": " + ended->text() : "") +
      ". What the ranks said last may be missing above");
  if (!ended) return {code_from_launcher(code, family), in_time, true};
  return {ended->code(family), in_time};
}

std::string RankProcesses::end_text(int code) const {
  const auto signal = signal_of(code);
  return std::string(now_.alone ? "the process" : "mpirun") +
         " ended with exit code " + std::to_string(code) +
         (signal
              ? " (signal " + std::to_string(*signal) + " ended it or a rank)"
              : "") +
         " and no rank could say why; the lines above are all that is known" +
         shared_memory_remark(now_);
}

void RankProcesses::explain_late_start(double limit_s) {
  const std::string what =
      "mpirun did not start the ranks within " + fixed(limit_s, 0) + " s";
  if (on_several_hosts())
    records_.explain_late_start(
        what + ": the network between the hosts does not pass data",
        kUnreachedHint);
  else
    records_.explain_late_start(
        what + " on this host",
        "mpirun's own lines above; are `ulimit -n` (256 or more), TMPDIR and "
        "/dev/shm large enough?");
}

bool RankProcesses::prepare(int restart, bool resumes) {
  if (resumes) add_resume(whole_.arguments);
  setenv(kRestartsVariable, std::to_string(restart).c_str(), 1);
  if (restart == 1) whole_.forwarded.emplace_back(kRestartsVariable);
  auto next = on_hosts_left(whole_,
                            {.run_folder = options_.run_folder,
                             .batch = records_.batch(),
                             .accumulate = options_.accumulate,
                             .min_hosts = static_cast<int>(config_.min_hosts),
                             .timeout_s = config_.timeout_s},
                            signals_);
  if (!next) return false;
  now_ = std::move(*next);
  return true;
}

}  // namespace chexnet
