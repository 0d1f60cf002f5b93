// The parent lives through several starts of the ranks:
//
//   start -> wait -> code explained by a post-mortem, or by its meaning?
//                        no: write one
//                    stop asked for, or no restart left?
//                        yes: last line, return
//                    pause (storage may come back)
//                 -> start again with --resume auto
//
// It holds no MPI and no GPU, so whatever kills ranks leaves it alive to say
// what happened. Its exit code is that of the post-mortem where there is one:
// mpirun's own is of whichever rank died first in its eyes.
#include "parent.hpp"

#include <cstdlib>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/restart_policy.hpp"
#include "chexnet/watch/postmortem.hpp"

namespace chexnet {
namespace {

// Ranks end themselves and their launcher within seconds of a post-mortem; this
// is for the rest.
constexpr double kTimeAfterPostmortem_s = 8;
constexpr double kLateOutput_s = 4;
constexpr int kSignalBase =
    128;  // exit codes of commands that a signal ended, less the signal

// The launcher ended and no rank could say why.
PostMortemNote launcher_note(const std::string& started, int exit_code,
                             const ParentTask& task) {
  PostMortem report;
  report.time = utc_time();
  report.cause = "launcher";
  report.exit_code = static_cast<int>(ExitCode::kDevice);
  report.what =
      started + " ended with exit code " + std::to_string(exit_code) +
      (exit_code > kSignalBase && exit_code < kSignalBase + 32
           ? " (signal " + std::to_string(exit_code - kSignalBase) +
                 " ended it or a rank)"
           : "") +
      " and no rank could say why; the lines above are all that is known";
  report.checkpoint = last_checkpoint(task.run_folder);
  report.resume = task.resume_command;
  std::error_code error;
  if (std::filesystem::exists(task.run_folder, error)) {
    try {
      write_postmortem(task.run_folder, report);
    } catch (const Error& e) {
      log_warning(e.what());
    }
  }
  return {report.cause, report.sentence(), report.exit_code, 0};
}

bool stop_file_exists(const ParentTask& task) {
  std::error_code error;
  return std::filesystem::exists(task.run_folder / "STOP", error);
}

// The code is none of ours, and no rank wrote why.
bool is_launchers_own(int code, const ParentTask& task) {
  return find_exit_meaning(code) == nullptr &&
         (task.run_folder.empty() || !read_postmortem(task.run_folder));
}

// Ranks that go on, and know that they do.
void prepare_restart(SelfLaunch& launch, int restarts) {
  add_resume(launch.arguments);
  setenv(kRestartsVariable, std::to_string(restarts).c_str(), 1);
  if (restarts == 1 && !launch.alone)
    launch.forwarded.emplace_back(kRestartsVariable);
}

}  // namespace

void add_resume(std::vector<std::string>& words) {
  if (!has_option(words, "--resume"))
    words.insert(words.end(), {"--resume", "auto"});
}

int run_ranks(SelfLaunch launch, const ParentTask& task) {
  RestartPolicy policy(task.restarts);
  // For the whole of it: a signal between two starts asks for a stop too.
  ParentSignals signals;
  for (int starts = 1;; ++starts) {
    if (!task.run_folder.empty()) put_postmortem_aside(task.run_folder);
    double explained_s = 0;
    const auto overdue = [&] {
      if (task.run_folder.empty() || !read_postmortem(task.run_folder))
        return false;
      if (explained_s == 0) explained_s = now_s();
      return now_s() - explained_s > kTimeAfterPostmortem_s;
    };
    const int code = run_as_parent(start_command(launch), signals, overdue);
    const bool stop_before = signals.asked_to_stop();
    // The first seconds of mpirun and the ranks are before anybody listens to a
    // signal; and mpirun calls its own end by the second request an error.
    const bool by_signal = code > kSignalBase && code < kSignalBase + 32;
    if ((stop_before && by_signal) ||
        (signals.ends_at_once() && is_launchers_own(code, task))) {
      log_warning(
          "[launch] stopped on request while the ranks were starting or "
          "ending");
      return static_cast<int>(ExitCode::kRequeue);
    }
    if (task.run_folder.empty() || !RestartPolicy::may_pass(code)) return code;
    auto note = read_postmortem(task.run_folder);
    if (!note && !RestartPolicy::is_explained(code))
      note = launcher_note(launch.alone ? "the process" : "mpirun", code, task);
    const int reported = note ? note->exit_code : code;
    const std::string checkpoint = last_checkpoint(task.run_folder);
    const bool again = !stop_before && policy.again(code, checkpoint);
    // Daemons on other hosts are killed seconds after the ranks ended and still
    // write; what people should read comes last.
    if (note && (again || launch.layout.hosts > 1))
      signals.stop_within(kLateOutput_s);
    if (!again) {
      if (note) log_error(note->sentence);
      return reported;
    }
    const double pause_s = RestartPolicy::pause_s(code);
    log_warning(
        "[launch] starting the ranks again from " +
        (checkpoint.empty() ? std::string("the beginning") : checkpoint) +
        " (" + std::to_string(policy.left()) + " restarts left)" +
        (pause_s > 0 ? " in " + fixed(pause_s, 0) + " s" : "") +
        (note ? ": " + note->sentence : std::string()));
    if (signals.stop_within(pause_s) || stop_file_exists(task)) {
      log_warning(
          "[launch] a stop was requested between two starts of the ranks: none "
          "follows");
      return static_cast<int>(ExitCode::kRequeue);
    }
    prepare_restart(launch, starts);
  }
}

}  // namespace chexnet
