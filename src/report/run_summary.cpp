#include "chexnet/report/run_summary.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "chexnet/comm/watch/postmortem.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/scores_output.hpp"
#include "chexnet/report/waiting_run.hpp"
#include "report_values.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

std::optional<double> written_at(const fs::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return static_cast<double>(info.st_mtim.tv_sec);
}

double age_s(double written_s) {
  return std::max(0.0, system_time_s() - written_s);
}

// Throws, and does not say "no run", where `path` cannot be looked at.
bool is_there(const fs::path& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error)
    throw CheckpointError(
        "[run] {}: {}. Hint: ask the owner of the run for permission to "
        "read its folder",
        path.string(), error.message());
  return there;
}

// A run's files beside its config.yaml.
bool has_records(const fs::path& folder) {
  std::error_code hidden;
  return fs::exists(folder / "metrics.jsonl", hidden) ||
         fs::exists(folder / "results.json", hidden);
}

// `hidden`: why it is unreadable.
bool is_run(const fs::path& folder, std::error_code& hidden) {
  return fs::exists(folder / "config.yaml", hidden) || is_waiting_run(folder);
}

std::string percent(double share) { return fixed(100 * share, 0) + " %"; }

// "93 % busy (rank 2 least, 71 %), at most 61 GiB each, 1280 W, 0.43 J an
// image".
std::string gpu_text(const GpuUse& gpu, std::optional<double> joules) {
  std::string text = percent(gpu.percent / 100) + " busy";
  if (gpu.gpus > 1)
    text += " (rank " + std::to_string(gpu.least_rank) + " least, " +
            percent(gpu.least_percent / 100) + ")";
  if (gpu.most_memory_bytes > 0)
    text += ", at most " + readable_bytes(gpu.most_memory_bytes) + " each";
  if (gpu.power_w > 0) text += ", " + fixed(gpu.power_w, 0) + " W";
  if (joules) text += ", " + fixed(*joules, 2) + " J an image";
  return text;
}

void add_speed_rows(const RunSummary& run, Rows& rows) {
  if (run.images_per_s > 0 && run.data_wait_fraction) {
    rows.emplace_back("images/s, lately", fixed(run.images_per_s, 1) + " on " +
                                              counted(run.ranks, "rank"));
    rows.emplace_back("waiting for data, lately",
                      percent(*run.data_wait_fraction));
  }
  if (run.gpu)
    rows.emplace_back(run.gpu->gpus == 1 ? "GPU, lately" : "GPUs, lately",
                      gpu_text(*run.gpu, run.joules_per_image()));
  if (!run.gpu_totals) return;
  rows.emplace_back("in " + readable_s(run.gpu_totals->seconds),
                    gpu_figures_text(*run.gpu_totals));
  rows.emplace_back("", gpu_rule_text(*run.gpu_totals));
}

// null: not known.
Json positive(auto value) {
  if (value <= 0) return nullptr;
  return value;
}

Json gpu_json(const RunSummary& run) {
  if (!run.gpu) return nullptr;
  return {{"gpus", run.gpu->gpus},
          {"utilization", run.gpu->percent},
          {"least_utilization", run.gpu->least_percent},
          {"least_rank", run.gpu->least_rank},
          {"memory_bytes", positive(run.gpu->most_memory_bytes)},
          {"power_w", positive(run.gpu->power_w)},
          {"joules_per_image", positive(run.joules_per_image().value_or(0))}};
}

}  // namespace

void check_holds_run(const fs::path& folder) {
  if (is_there(folder / "config.yaml")) return;
  throw CheckpointError(
      "[run] {}: holds no run (no config.yaml). Hint: name a folder like "
      "runs/NAME",
      folder.string());
}

void find_checkpoint(RunSummary& run) {
  const fs::path folder = run.folder;
  run.checkpoint = last_checkpoint(folder);
  run.checkpoint_s.reset();
  if (run.checkpoint.empty()) return;
  run.checkpoint_s =
      written_at(folder / "checkpoints" / run.checkpoint / "state.json");
}

std::vector<fs::path> find_runs(const fs::path& folder) {
  if (is_there(folder / "config.yaml") || is_waiting_run(folder))
    return {folder};
  std::vector<fs::path> runs;
  std::vector<std::string> folders;  // of runs
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code hidden;
    if (is_run(entry.path(), hidden))
      runs.push_back(entry.path());
    else if (has_records(entry.path()))
      log_warning("[run] " + entry.path().string() +
                  ": has no config.yaml; this run is left out. Hint: copy it "
                  "again from where the run was made");
    else if (has_runs_below(entry.path()))
      folders.push_back(entry.path().string());
    if (hidden)
      log_warning("[run] " + entry.path().string() + ": " + hidden.message());
  }
  if (error == std::errc::permission_denied) is_there(folder / ".");
  std::ranges::sort(runs);
  if (runs.empty() && run_is_locked(folder).value_or(false))
    throw CheckpointError(
        "[run] {}: a run is starting here, and still looks for its data. "
        "Hint: ask again in a while",
        folder.string());
  std::ranges::sort(folders);
  if (runs.empty() && !folders.empty())
    throw CheckpointError(
        "[run] {}: holds no run, but folders of runs. Hint: name those: {}",
        folder.string(), listed(folders));
  for (const auto& left_out : folders)
    log_warning("[run] " + left_out +
                ": holds runs, which are left out. Hint: name this folder, "
                "too");
  if (runs.empty())
    throw CheckpointError(
        "[run] {}: neither a run nor a folder of runs. Hint: runs are in "
        "runs/NAME",
        folder.string());
  return runs;
}

bool has_runs_below(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code hidden;
    // Of a data set there are many files.
    if (it->is_directory(hidden) && is_run(it->path(), hidden)) return true;
  }
  return false;
}

bool is_new_run(const fs::path& folder, std::set<fs::path>& seen) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(folder, error);
  if (seen.insert(error ? folder : place).second) return true;
  log_warning("[run] " + folder.string() +
              " is named twice, and is looked at once");
  return false;
}

namespace {

std::string ensemble_text(const RunSummary& run) {
  Rows rows = {{"run", run.folder + "  (ensemble)"},
               {"members", listed(run.members, run.members.size())}};
  for (const auto& [split, mean] : run.final_auroc)
    rows.emplace_back("final AUROC, " + split, mean_auroc_text(mean));
  rows.emplace_back("page", (fs::path(run.folder) / "report.html").string());
  return aligned(rows);
}

}  // namespace

std::string summary_text(const RunSummary& run) {
  if (run.state == kEnsemble) return ensemble_text(run);
  if (run.state == "waiting")
    return aligned({{"run", run.folder + "  (waiting)"},
                    {"job", run.job + ", submitted and not begun: the batch "
                                      "system says when, or why not"}});
  const int64_t epoch = run.epoch + (run.step > run.epoch_end_step ? 1 : 0);
  Rows rows = {{"run", run.folder + "  (" + run.state + ")"}};
  if (run.total_steps > 0)
    rows.emplace_back("step", std::to_string(run.step) + " of " +
                                  std::to_string(run.total_steps) + ", epoch " +
                                  std::to_string(epoch));
  if (run.state == "running" && run.seconds_to_go)
    rows.emplace_back("to go", readable_s(*run.seconds_to_go));
  if (run.state == "running" && run.job_seconds_left)
    rows.emplace_back("left of the job", readable_s(*run.job_seconds_left));
  add_speed_rows(run, rows);
  if (run.slowest_rank)
    rows.emplace_back("slowest rank", std::to_string(*run.slowest_rank) + " (" +
                                          fixed(*run.slowest_ratio, 2) +
                                          " x the median)");
  if (run.loss) rows.emplace_back("loss", fixed(*run.loss, 4));
  const std::string at = run.best_step < 0 ? "; last evaluation"
                                           : "; at the best step, " +
                                                 std::to_string(run.best_step);
  const auto val = run.final_auroc.find("val");
  if (val != run.final_auroc.end())
    rows.emplace_back("final AUROC, val", mean_auroc_text(val->second) + at);
  else if (run.val_auroc.value)
    rows.emplace_back("validation AUROC", mean_auroc_text(run.val_auroc) + at);
  if (run.val_is_collapsed) rows.emplace_back("collapsed", kCollapsed);
  for (const auto& [split, mean] : run.final_auroc)
    if (split != "val")
      rows.emplace_back("final AUROC, " + split, mean_auroc_text(mean));
  rows.emplace_back("checkpoint",
                    run.checkpoint_s
                        ? run.checkpoint + ", " +
                              readable_s(age_s(*run.checkpoint_s)) + " ago"
                        : "none");
  if (run.written_s)
    rows.emplace_back("last written",
                      readable_s(age_s(*run.written_s)) + " ago");
  if (run.has_events)
    rows.emplace_back(
        "started on",
        run.host + (run.job.empty() ? "" : ", job " + run.job) +
            (run.restarts > 0 ? ", resumed " + counted(run.restarts, "time")
                              : ""));
  else
    rows.emplace_back("unknown",
                      std::string("step, speed and scores: ") + kNoEvents);
  if (run.damaged_lines > 0)
    rows.emplace_back("left out", counted(run.damaged_lines, "damaged line") +
                                      " of metrics.jsonl");
  for (const auto& text : run.stragglers) rows.emplace_back("straggler", text);
  if (!run.rung.empty()) rows.emplace_back("in its sweep", run.rung);
  if (!run.error.empty())
    rows.emplace_back(
        "failed", run.error + " (exit " + std::to_string(run.exit_code) + ")");
  if (run.stopped_process > 0)
    rows.emplace_back("silent",
                      formatted("process {} is stopped by a signal, "
                                "and goes on after kill -CONT {}",
                                run.stopped_process, run.stopped_process));
  if (run.state == "died")
    rows.emplace_back(
        "died",
        "no process holds its lock and it left no message: was it killed? "
        "--resume auto continues from the checkpoint");
  if (run.state != "finished" && run.has_results)
    rows.emplace_back("results.json",
                      "is there, so the run ended once: a later start went on, "
                      "or metrics.jsonl lost its end");
  if (!run.resubmit.empty()) rows.emplace_back("goes on with", run.resubmit);
  if (!run.last_words.empty()) rows.emplace_back("post-mortem", run.last_words);
  return aligned(rows);
}

std::string summary_json(const RunSummary& run) {
  const auto optional = [](const auto& value) -> Json {
    if (!value || !std::isfinite(static_cast<double>(*value))) return nullptr;
    return *value;
  };
  const auto counted_by_events = [&run](int64_t value) -> Json {
    if (!run.has_events) return nullptr;
    return value;
  };
  const auto age = [](const std::optional<double>& written_s) -> Json {
    if (!written_s) return nullptr;
    return age_s(*written_s);
  };
  const auto mean_auroc = [](const MeanFigure& mean) -> Json {
    return {{"mean_auroc", json_of(mean.value)},
            {"mean_auroc_interval", json_of(mean.interval)},
            {"findings_in_mean", mean.findings},
            {"mean_is_rough", mean.rough}};
  };
  Json finals = Json::object();
  for (const auto& [split, mean] : run.final_auroc)
    finals[split] = mean_auroc(mean);
  const Json json = {
      {"folder", run.folder},
      {"state", run.state},
      {"step", counted_by_events(run.step)},
      {"total_steps", positive(run.total_steps)},
      {"epoch", counted_by_events(run.epoch)},
      {"ranks", positive(run.ranks)},
      {"restarts", counted_by_events(run.restarts)},
      {"images_per_s", positive(run.images_per_s)},
      {"data_wait_fraction", optional(run.data_wait_fraction)},
      {"gpu", gpu_json(run)},
      {"gpu_totals", gpu_totals_json(run.gpu_totals)},
      {"slowest_rank", optional(run.slowest_rank)},
      {"slowest_ratio", optional(run.slowest_ratio)},
      {"loss", optional(run.loss)},
      {"best_step", run.best_step},
      {"validation", mean_auroc(run.val_auroc)},
      {"validation_sha256", run.validation_sha256},
      {"final", finals},
      {"seconds_to_go",
       run.state == "running" ? optional(run.seconds_to_go) : Json()},
      {"job_seconds_left", optional(run.job_seconds_left)},
      {"resubmit", run.resubmit},
      {"checkpoint", run.checkpoint},
      {"checkpoint_age_s", age(run.checkpoint_s)},
      {"written_age_s", age(run.written_s)},
      {"host", run.host},
      {"job", run.job},
      {"stragglers", run.stragglers},
      {"rung", run.rung},
      {"error", run.error},
      {"exit_code", run.exit_code},
      {"postmortem", run.last_words}};
  return json_text(json);
}

}  // namespace chexnet
