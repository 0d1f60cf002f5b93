#include "chexnet/report/run_summary.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "chexnet/config/load.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/table.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/metric_lines.hpp"
#include "chexnet/watch/postmortem.hpp"

namespace chexnet {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The state of a run follows from the last event that says one, and only for a
// run that seems to be running from what other processes see:
//
//   start, restart -> running, stop -> stopped, error -> failed,
//   end -> finished
//   running with a post-mortem                 -> aborted
//   running, its lock free on this host        -> died
//   running, silent for ten minutes on another
//     host, where the lock may not reach       -> silent
//
// A run goes through these several times, once for each start.

// A run that logs nothing for so long is not simply busy.
constexpr double kSilent = 600;

double age_of(const fs::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return -1;
  return std::max(0.0,
                  system_time_s() - static_cast<double>(info.st_mtim.tv_sec));
}

void read_ranks(RunSummary& run, const json& own) {
  std::vector<std::pair<double, int>> times;
  for (const auto& [name, ms] : own.items()) {
    int rank = 0;
    const auto parsed =
        std::from_chars(name.data(), name.data() + name.size(), rank);
    if (parsed.ec == std::errc() && ms.is_number())
      times.emplace_back(ms.get<double>(), rank);
  }
  if (times.size() < 2) return;
  std::ranges::sort(times);
  run.slowest_rank = times.back().second;
  run.slowest_ratio =
      times.back().first / std::max(1e-9, times[(times.size() - 1) / 2].first);
}

void read_event(RunSummary& run, const json& event, double batch) {
  const std::string kind = event.value("event", "");
  const auto number = [&](const char* key, double other) {
    return event.contains(key) && event[key].is_number()
               ? event[key].get<double>()
               : other;
  };
  const auto figure = [&](const char* key) -> std::optional<double> {
    if (!event.contains(key) || !event[key].is_number()) return std::nullopt;
    return event[key].get<double>();
  };
  if (kind == "start" || kind == "restart") {
    run.total_steps = event.value("total_steps", run.total_steps);
    run.ranks = event.value("ranks", run.ranks);
    run.host = event.value("host", "");
    run.job = event.value("job", "");
    run.restarts += kind == "restart" ? 1 : 0;
    run.state = "running";
    run.error.clear();
    run.exit_code = 0;
  } else if (kind == "train") {
    run.step = event.value("step", run.step);
    run.epoch = event.value("epoch", run.epoch);
    run.loss = number("loss", std::nan(""));
    run.images_per_s = number("images_per_s", 0);
    const double seconds =
        batch * number("steps", 1) / std::max(1e-9, run.images_per_s);
    run.data_wait_fraction =
        std::min(1.0, number("data_wait_s", 0) / std::max(1e-9, seconds));
    run.job_seconds_left.reset();
    if (event.contains("job_seconds_left"))
      run.job_seconds_left = number("job_seconds_left", 0);
  } else if (kind == "val") {
    const bool best = event.value("best", "") == "yes";
    if (best || run.best_step < 0) run.val_auroc = figure("mean_auroc");
    if (best) run.best_step = event.value("step", run.best_step);
  } else if (kind == "system" || kind == "ranks") {
    read_ranks(run, event.value("own_ms_per_step", json::object()));
  } else if (kind == "straggler") {
    run.stragglers.push_back("rank " + std::to_string(event.value("rank", 0)) +
                             " on " + event.value("host", "") + ": " +
                             event.value("cause", ""));
  } else if (kind == "final") {
    if (const auto auroc = figure("mean_auroc"))
      run.final_auroc[event.value("split", "")] = *auroc;
  } else if (kind == "error") {
    // A later start that was refused takes nothing from a run that is complete.
    if (run.state == "finished") return;
    run.state = "failed";
    run.error = event.value("sentence", "");
    run.exit_code = event.value("exit_code", 0);
  } else if (kind == "stop") {
    run.state = "stopped";
  } else if (kind == "end") {
    run.state = "finished";
  }
}

// Throws, and does not say "no run", where `path` cannot be looked at.
bool is_there(const fs::path& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error)
    throw CheckpointError(
        "[status] " + path.string() + ": " + error.message() +
        ". Hint: ask the owner of the run for permission to read its folder");
  return there;
}

// What a run that wrote neither an end nor an error is doing.
std::string state_of_silence(const RunSummary& run, const fs::path& folder) {
  const auto locked = run_is_locked(folder);
  if (locked == true) return "running";
  if (locked == false && run.host == host_name()) return "died";
  return run.written_age_s > kSilent ? "silent" : "running";
}

std::string percent(double share) { return fixed(100 * share, 0) + " %"; }

}  // namespace

void check_holds_run(const fs::path& folder) {
  if (is_there(folder / "config.yaml")) return;
  throw CheckpointError(
      "[run] " + folder.string() +
      ": holds no run (no config.yaml). Hint: name a folder like runs/NAME");
}

RunSummary summarize_run(const fs::path& folder) {
  check_holds_run(folder);
  const fs::path config_file = folder / "config.yaml";
  RunSummary run;
  run.folder = folder.string();
  run.name = fs::absolute(folder).lexically_normal().filename().string();
  if (run.name.empty())
    run.name = fs::absolute(folder).parent_path().filename().string();
  run.state = "not started";
  const Config config = load_config({config_file}, {});
  const auto batch = static_cast<double>(config.train.batch.value_or(0));
  for (const auto& option : config_options())
    run.config[option.key] = option_text(option, config);

  const fs::path metrics = folder / "metrics.jsonl";
  if (fs::exists(metrics)) {
    for_each_event(read_text(metrics),
                   [&](const json& event, const std::string&) {
                     read_event(run, event, batch);
                   });
    run.written_age_s = age_of(metrics);
  }
  run.checkpoint = last_checkpoint(folder);
  if (!run.checkpoint.empty())
    run.checkpoint_age_s =
        age_of(folder / "checkpoints" / run.checkpoint / "state.json");
  if (run.state == "running") {
    if (const auto note = read_postmortem(folder)) {
      run.state = "aborted";
      run.last_words = note->sentence;
      run.exit_code = note->exit_code;
    } else {
      run.state = state_of_silence(run, folder);
    }
  }
  if (run.images_per_s > 0 && run.total_steps > run.step)
    run.seconds_to_go = static_cast<double>(run.total_steps - run.step) *
                        batch / run.images_per_s;
  return run;
}

std::vector<fs::path> find_runs(const fs::path& folder) {
  if (is_there(folder / "config.yaml")) return {folder};
  std::vector<fs::path> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code hidden;
    if (fs::exists(entry.path() / "config.yaml", hidden))
      runs.push_back(entry.path());
    if (hidden)
      log_warning("[status] " + entry.path().string() + ": " +
                  hidden.message());
  }
  if (error == std::errc::permission_denied) is_there(folder / ".");
  std::ranges::sort(runs);
  if (runs.empty())
    throw CheckpointError(
        "[status] " + folder.string() +
        ": neither a run nor a folder of runs. Hint: runs are in runs/NAME");
  return runs;
}

std::string summary_text(const RunSummary& run) {
  // run.epoch counts complete ones: a run that goes on is in the next.
  const bool complete = run.total_steps > 0 && run.step >= run.total_steps;
  const int64_t epoch = complete ? run.epoch : run.epoch + 1;
  Rows rows = {{"run", run.folder + "  (" + run.state + ")"},
               {"step", std::to_string(run.step) + " of " +
                            std::to_string(run.total_steps) + ", epoch " +
                            std::to_string(epoch)}};
  if (run.state == "running" && run.seconds_to_go)
    rows.emplace_back("to go", readable_s(*run.seconds_to_go));
  if (run.state == "running" && run.job_seconds_left)
    rows.emplace_back("left of the job", readable_s(*run.job_seconds_left));
  rows.emplace_back("images/s", fixed(run.images_per_s, 1) + " on " +
                                    counted(run.ranks, "rank"));
  rows.emplace_back("waiting for data", percent(run.data_wait_fraction));
  if (run.slowest_rank)
    rows.emplace_back("slowest rank", std::to_string(*run.slowest_rank) + " (" +
                                          fixed(run.slowest_ratio, 2) +
                                          " x the median)");
  if (run.loss) rows.emplace_back("loss", fixed(*run.loss, 4));
  if (run.val_auroc)
    rows.emplace_back(
        "validation AUROC",
        fixed(*run.val_auroc, 4) +
            (run.best_step < 0
                 ? " (last evaluation)"
                 : " at the best step, " + std::to_string(run.best_step)));
  for (const auto& [split, auroc] : run.final_auroc)
    rows.emplace_back("final AUROC, " + split, fixed(auroc, 4));
  rows.emplace_back(
      "checkpoint",
      run.checkpoint.empty()
          ? "none"
          : run.checkpoint + ", " + readable_s(run.checkpoint_age_s) + " ago");
  if (run.written_age_s >= 0)
    rows.emplace_back("last written", readable_s(run.written_age_s) + " ago");
  rows.emplace_back(
      "started on",
      run.host + (run.job.empty() ? "" : ", job " + run.job) +
          (run.restarts > 0 ? ", resumed " + counted(run.restarts, "time")
                            : ""));
  for (const auto& text : run.stragglers) rows.emplace_back("straggler", text);
  if (!run.error.empty())
    rows.emplace_back(
        "failed", run.error + " (exit " + std::to_string(run.exit_code) + ")");
  if (run.state == "died")
    rows.emplace_back(
        "died",
        "no process holds its lock and it left no message: was it killed? "
        "--resume auto continues from the checkpoint");
  if (!run.last_words.empty()) rows.emplace_back("post-mortem", run.last_words);
  return aligned(rows);
}

std::string summary_json(const RunSummary& run) {
  const auto optional = [](const auto& value) -> Json {
    if (!value || !std::isfinite(static_cast<double>(*value))) return nullptr;
    return *value;
  };
  const Json json = {{"folder", run.folder},
                     {"state", run.state},
                     {"step", run.step},
                     {"total_steps", run.total_steps},
                     {"epoch", run.epoch},
                     {"ranks", run.ranks},
                     {"restarts", run.restarts},
                     {"images_per_s", run.images_per_s},
                     {"data_wait_fraction", run.data_wait_fraction},
                     {"slowest_rank", optional(run.slowest_rank)},
                     {"slowest_ratio", run.slowest_ratio},
                     {"loss", optional(run.loss)},
                     {"best_step", run.best_step},
                     {"validation_auroc", optional(run.val_auroc)},
                     {"final_auroc", run.final_auroc},
                     {"seconds_to_go", optional(run.seconds_to_go)},
                     {"job_seconds_left", optional(run.job_seconds_left)},
                     {"checkpoint", run.checkpoint},
                     {"checkpoint_age_s", run.checkpoint_age_s},
                     {"written_age_s", run.written_age_s},
                     {"host", run.host},
                     {"job", run.job},
                     {"stragglers", run.stragglers},
                     {"error", run.error},
                     {"exit_code", run.exit_code},
                     {"postmortem", run.last_words}};
  return json_text(json);
}

}  // namespace chexnet
