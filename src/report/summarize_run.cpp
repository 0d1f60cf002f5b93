#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "chexnet/comm/watch/postmortem.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/report/waiting_run.hpp"
#include "metric_lines.hpp"
#include "report_values.hpp"
#include "run_events.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// The state of a run follows from the last event that says one, and only for a
// run that seems to be running from what other processes see:
//
//   start, restart -> running, stop -> stopped, error -> failed,
//   end -> finished
//   running with a post-mortem                 -> aborted
//   running, its lock free on this host, or
//     not there, as in a copy                  -> died
//   running, silent for ten minutes on another
//     host, where the lock may not reach, or
//     stopped by a signal on this host         -> silent
//
// A run goes through these several times, once for each start.

// A run that logs nothing for so long is not simply busy.
constexpr double kSilent = 600;

// The state of a run that recorded neither an end nor an error.
std::string state_of_silence(const RunSummary& run, const fs::path& folder) {
  const auto locked = run_is_locked(folder);
  if (locked == true) return run.stopped_process > 0 ? "silent" : "running";
  std::error_code error;
  const bool is_free =
      locked == false || (!fs::exists(folder / ".lock", error) && !error);
  if (is_free && run.host == host_name()) return "died";
  const bool silent =
      run.written_s && system_time_s() - *run.written_s > kSilent;
  return silent ? "silent" : "running";
}

void look_at_processes(RunSummary& run, const fs::path& folder) {
  if (run.state != "running") return;
  const auto note = read_postmortem(folder);
  if (!note) {
    run.stopped_process = stopped_owner(folder);
    run.state = state_of_silence(run, folder);
    return;
  }
  run.state = "aborted";
  run.last_words = printable(note->sentence);
  run.exit_code = note->exit_code;
}

void read_config(RunSummary& run, const fs::path& path) {
  const Config config = load_config({path}, {});
  run.batch = config.train.batch.value_or(0);
  for (const auto& option : config_options())
    run.config[option.key] = option_text(option, config);
}

void read_events(RunSummary& run, const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT) return;
  run.damaged_lines = for_each_event(
      read_text(path), [&](const nlohmann::json& event, const std::string&) {
        add_event(run, event);
        run.has_events = true;
      });
  run.written_s = static_cast<double>(info.st_mtim.tv_sec);
}

// Its first line; empty where there is no such file.
std::string line_of(const fs::path& path) {
  constexpr size_t kMost = 4096;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  const std::string text = read_text_start(path, kMost);
  return text.substr(0, text.find('\n'));
}

std::string name_of_run(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const std::string name = whole.filename().string();
  return name.empty() ? whole.parent_path().filename().string() : name;
}

}  // namespace

namespace {

// An ensemble has no metrics.jsonl.
void read_scores_of_ensemble(RunSummary& run, const fs::path& folder) {
  try {
    const Json results = read_results(folder);
    for (const auto& [split, scores] : member(results, "evaluations").items()) {
      MeanFigure& mean = run.final_auroc[split];
      mean.value = number(scores, "mean_auroc");
      if (const auto found = interval(scores, "mean_auroc_interval"))
        mean.interval = PercentileInterval{*found};
      mean.findings =
          static_cast<size_t>(number(scores, "findings_in_mean").value_or(0));
      mean.rough = is_true(scores, "mean_is_rough");
    }
    for (const auto& m : member(member(results, "ensemble"), "members"))
      run.members.push_back(printable(text(m, "run")));
  } catch (const Error& e) {
    log_warning(e.what());
  }
}

}  // namespace

bool is_ensemble_folder(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "model.safetensors", error) &&
         fs::exists(folder / "config.yaml", error);
}

RunSummary summarize_run(const fs::path& folder) {
  RunSummary run;
  run.folder = folder.string();
  run.name = name_of_run(folder);
  if (is_waiting_run(folder)) {
    run.state = "waiting";
    run.job = waiting_job(folder);
    return run;
  }
  check_holds_run(folder);
  run.state = "not started";
  read_config(run, folder / "config.yaml");
  read_events(run, folder / "metrics.jsonl");
  std::error_code error;
  run.has_results = fs::exists(folder / "results.json", error);
  if (run.state == "not started" && run.has_results)
    run.state = is_ensemble_folder(folder) ? kEnsemble : "finished";
  if (run.state == kEnsemble) read_scores_of_ensemble(run, folder);
  find_checkpoint(run);
  look_at_processes(run, folder);
  if (run.state == "stopped" || run.state == "aborted")
    run.resubmit = printable(line_of(folder / "resubmit"));
  estimate_time_left(run);
  return run;
}

}  // namespace chexnet
