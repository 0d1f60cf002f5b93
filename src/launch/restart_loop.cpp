// A parent lives through several starts of the ranks:
//
//   start -> wait -> code explained by a post-mortem, or by its meaning?
//                        no: write one
//                    stop requested, or no restart left?
//                        yes: last line, return
//                    pause (storage may come back)
//                 -> start again with --resume auto, on the hosts that answer
//
// It holds no MPI and no GPU, so whatever kills ranks leaves it alive to say
// what happened. Its exit code is that of the post-mortem where there is one:
// mpirun's is that of the rank that died first, as far as mpirun knows.
#include "chexnet/launch/restart_loop.hpp"

#include <signal.h>

#include "chexnet/core/exit_codes.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/launcher_codes.hpp"

namespace chexnet {
namespace {

constexpr double kLateOutput_s = 4;
constexpr auto kStopped = static_cast<int>(ExitCode::kRequeue);

// The codes that core/exit_codes.hpp says may pass, and those that are not
// ours: deaths by signal, which launchers report as other numbers.
bool is_worth_a_start(int code) {
  const ExitMeaning* meaning = find_exit_meaning(code);
  return meaning == nullptr || meaning->after == AfterExit::kAnyone;
}

// Ranks that meet the same outage again use up their restarts for nothing.
double pause_s(int code) {
  constexpr double kOutage_s = 60;
  return code == static_cast<int>(ExitCode::kOutage) ? kOutage_s : 0;
}

void say(const std::optional<EndNote>& note) {
  if (note) log_error(note->sentence);
}

}  // namespace

int RestartLoop::run() {
  for (;;) {
    records_.put_aside();
    if (const auto code = after(ranks_.run())) return *code;
  }
}

std::optional<int> RestartLoop::after(const RankEnd& end) {
  int code =
      end.launcher_hung
          ? records_.end_code().value_or(static_cast<int>(ExitCode::kHang))
          : end.code;
  auto note = records_.postmortem();
  if (!end.in_time && !note) return static_cast<int>(ExitCode::kHang);
  const bool stop_before = ranks_.asked_to_stop();
  // The first seconds of mpirun and the ranks are before anybody listens to a
  // signal; and mpirun calls its end by TERM an error: that of a second
  // request, or of a canceled job, in which each process gets one. Other hosts
  // take the ranks that this ends for lost.
  const bool lost =
      note && note->exit_code == static_cast<int>(ExitCode::kDevice);
  if (stop_before && (lost || signal_of(code) ||
                      (find_exit_meaning(code) == nullptr && !note))) {
    records_.explain_stop();
    return kStopped;
  }
  // If mpirun was killed before the run ended, its code is not the one that the
  // ranks recorded. Nor is it a hang where they did their work and mpirun alone
  // was held up.
  const bool hung = code == static_cast<int>(ExitCode::kHang);
  if (find_exit_meaning(code) == nullptr || (hung && !note))
    code = records_.end_code().value_or(code);
  const bool is_pipe_closed = signal_of(code) == SIGPIPE;  // `| head`
  if (!records_.exist() && find_exit_meaning(code) == nullptr &&
      !is_pipe_closed) {
    log_error(ranks_.end_text(code));
    return static_cast<int>(ExitCode::kDevice);
  }
  if (!records_.exist() || !is_worth_a_start(code)) return code;

  // With a code of ours a rank has already said why it ended.
  if (!note && find_exit_meaning(code) == nullptr)
    note = records_.explain(ranks_.end_text(code));
  const RunRecords::Mark begun = records_.begun();
  if (note && begun) records_.tell_monitors();
  const std::string checkpoint = begun ? records_.checkpoint() : "";
  const bool again = !stop_before && is_worth_another(code, checkpoint);
  // Daemons on other hosts are killed seconds after the ranks ended and still
  // write; what people should read comes last.
  if (note && (again || ranks_.on_several_hosts()))
    ranks_.stop_within(kLateOutput_s);
  if (again) return prepare(code, note, checkpoint, begun);
  say(note);
  return note ? note->exit_code : code;
}

// A new checkpoint in between is progress and clears the count; without one,
// the next start would most likely end where the last did. Counts the restart.
bool RestartLoop::is_worth_another(int code, const std::string& checkpoint) {
  if (!is_worth_a_start(code) || left_ <= 0) return false;
  at_same_ = checkpoint == checkpoint_ ? at_same_ + 1 : 0;
  checkpoint_ = checkpoint;
  if (at_same_ >= kSamePlace) return false;
  --left_;
  return true;
}

std::optional<int> RestartLoop::prepare(int code,
                                        const std::optional<EndNote>& note,
                                        const std::string& checkpoint,
                                        const RunRecords::Mark& begun) {
  if (!records_.are_ours()) {  // as rank 0 would have, had it come so far
    say(note);
    records_.refuse();
  }
  const double pause = pause_s(code);
  log_warning("[launch] starting the ranks again from " +
              (checkpoint.empty() ? std::string("the beginning") : checkpoint) +
              " (" + std::to_string(left_) + " restarts left)" +
              (pause > 0 ? " in " + fixed(pause, 0) + " s" : "") +
              (note ? ": " + note->sentence : std::string()));
  if (ranks_.stop_within(pause) || records_.stop_is_requested()) {
    log_warning(
        "[launch] a stop was requested between two starts of the ranks: none "
        "follows");
    records_.record_stop("stopped between two starts");
    return kStopped;
  }
  // Where the run is gone, or another has the folder by now, the ranks report
  // it as the first ones would have.
  const bool resumes = begun && begun == records_.begun();
  records_.remove_old_stop_file();
  if (ranks_.prepare(++restarts_, resumes)) return std::nullopt;
  return note ? note->exit_code : code;
}

}  // namespace chexnet
