#include "parent.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "chexnet/comm/postmortem.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/resources.hpp"
#include "chexnet/launch/restart_policy.hpp"

namespace chexnet {
namespace {

// Ranks end themselves and their launcher within seconds of a post-mortem; this is for the rest.
constexpr double kPatienceAfterPostmortem = 8;
constexpr auto kLateOutput = std::chrono::seconds(4);

// The launcher ended and no rank could say why.
PostMortemNote launcher_note(int exit_code, const ParentTask& task) {
  PostMortem report;
  report.time = utc_time();
  report.cause = "launcher";
  report.exit_code = static_cast<int>(ExitCode::kDevice);
  report.what = "mpirun ended with exit code " + std::to_string(exit_code) +
                (exit_code > 128 && exit_code < 160
                     ? " (signal " + std::to_string(exit_code - 128) + " ended it or a rank)"
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

}  // namespace

int run_ranks(SelfLaunch launch, const ParentTask& task) {
  RestartPolicy policy(task.restarts);
  for (;;) {
    if (!task.run_folder.empty()) put_postmortem_aside(task.run_folder);
    double explained_s = 0;
    const auto overdue = [&] {
      if (task.run_folder.empty() || !read_postmortem(task.run_folder)) return false;
      if (explained_s == 0) explained_s = now_s();
      return now_s() - explained_s > kPatienceAfterPostmortem;
    };
    const int code = run_as_parent(mpirun_command(launch), overdue);
    if (task.run_folder.empty() || !RestartPolicy::may_pass(code)) return code;
    auto note = read_postmortem(task.run_folder);
    const bool own_code =
        code == static_cast<int>(ExitCode::kDevice) || code == static_cast<int>(ExitCode::kHang);
    // With 5 or 7 of its own a rank has said what happened.
    if (!note && !own_code) note = launcher_note(code, task);
    // Daemons on other hosts are killed seconds after the ranks ended and still write; what people
    // should read comes last.
    if (note) std::this_thread::sleep_for(kLateOutput);
    const int reported = note ? note->exit_code : code;
    const std::string checkpoint = last_checkpoint(task.run_folder);
    if (parent_was_asked_to_stop() || !policy.again(code, checkpoint)) {
      if (note) log_error(note->sentence);
      return reported;
    }
    log_warning("[launch] starting the ranks again from " +
                (checkpoint.empty() ? std::string("the beginning") : checkpoint) + " (" +
                std::to_string(policy.left()) + " restarts left)" +
                (note ? ": " + note->sentence : std::string()));
    auto& words = launch.arguments;
    const auto resume = std::ranges::find(words, "--resume");
    if (resume == words.end()) words.insert(words.end(), {"--resume", "auto"});
  }
}

}  // namespace chexnet
