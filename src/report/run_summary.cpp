#include "chexnet/report/run_summary.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "chexnet/comm/postmortem.hpp"
#include "chexnet/config/knobs.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/resources.hpp"
#include "chexnet/core/table.hpp"

namespace chexnet {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// A run that logs nothing for so long is not simply busy.
constexpr double kSilent = 600;

double age_of(const fs::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return -1;
  return std::max(0.0, system_time_s() - static_cast<double>(info.st_mtim.tv_sec));
}

void read_ranks(RunSummary& run, const json& own) {
  std::vector<std::pair<double, int>> times;
  for (const auto& [rank, ms] : own.items()) times.emplace_back(ms.get<double>(), std::stoi(rank));
  if (times.size() < 2) return;
  std::ranges::sort(times);
  run.slowest_rank = times.back().second;
  run.slowest_ratio = times.back().first / std::max(1e-9, times[(times.size() - 1) / 2].first);
}

void read_event(RunSummary& run, const json& event, double batch) {
  const std::string kind = event.value("event", "");
  const auto number = [&](const char* key, double other) {
    return event.contains(key) && event[key].is_number() ? event[key].get<double>() : other;
  };
  if (kind == "start" || kind == "restart") {
    run.total_steps = event.value("total_steps", run.total_steps);
    run.ranks = event.value("ranks", run.ranks);
    run.host = event.value("host", "");
    run.job = event.value("job", "");
    run.restarts += kind == "restart" ? 1 : 0;
    run.state = "running";
  } else if (kind == "train") {
    run.step = event.value("step", run.step);
    run.epoch = event.value("epoch", run.epoch);
    run.loss = number("loss", std::nan(""));
    run.images_per_s = number("images_per_s", 0);
    const double seconds = batch * number("steps", 1) / std::max(1e-9, run.images_per_s);
    run.data_wait_share = std::min(1.0, number("data_wait_s", 0) / std::max(1e-9, seconds));
    run.job_seconds_left.reset();
    if (event.contains("job_seconds_left")) run.job_seconds_left = number("job_seconds_left", 0);
  } else if (kind == "val") {
    if (const double auroc = number("mean_auroc", std::nan("")); !std::isnan(auroc))
      run.best_auroc = std::max(run.best_auroc.value_or(0), auroc);
  } else if (kind == "system" || kind == "ranks") {
    read_ranks(run, event.value("own_ms_per_step", json::object()));
  } else if (kind == "straggler") {
    run.stragglers.push_back("rank " + std::to_string(event.value("rank", 0)) + " on " +
                             event.value("host", "") + ": " + event.value("cause", ""));
  } else if (kind == "stop") {
    run.state = "stopped";
  } else if (kind == "end") {
    run.state = "finished";
  }
}

std::string percent(double share) { return fixed(100 * share, 0) + " %"; }

}  // namespace

RunSummary summarise_run(const fs::path& folder) {
  const fs::path config_file = folder / "config.yaml";
  if (!fs::exists(config_file))
    throw CheckpointError("[status] " + folder.string() +
                          ": holds no run (no config.yaml). Hint: name a folder like runs/NAME");
  RunSummary run;
  run.folder = folder.string();
  run.name = fs::absolute(folder).lexically_normal().filename().string();
  if (run.name.empty()) run.name = fs::absolute(folder).parent_path().filename().string();
  run.state = "not started";
  const Config config = load_config({config_file}, {});
  for (const auto& knob : knobs()) run.config[knob.key] = knob_text(knob, config);

  const fs::path metrics = folder / "metrics.jsonl";
  if (fs::exists(metrics)) {
    std::istringstream lines(read_text(metrics));
    for (std::string line; std::getline(lines, line);) {
      const json event = json::parse(line, nullptr, false);
      if (event.is_object()) read_event(run, event, static_cast<double>(config.train.batch));
    }
    run.written_age_s = age_of(metrics);
  }
  run.checkpoint = last_checkpoint(folder);
  if (!run.checkpoint.empty())
    run.checkpoint_age_s = age_of(folder / "checkpoints" / run.checkpoint / "state.json");
  if (run.state == "running") {
    if (const auto note = read_postmortem(folder)) {
      run.state = "halted";
      run.last_words = note->sentence;
    } else if (run.written_age_s > kSilent) {
      run.state = "silent";
    }
  }
  if (run.images_per_s > 0 && run.total_steps > run.step)
    run.seconds_to_go = static_cast<double>(run.total_steps - run.step) *
                        static_cast<double>(config.train.batch) / run.images_per_s;
  return run;
}

std::vector<fs::path> find_runs(const fs::path& folder) {
  if (fs::exists(folder / "config.yaml")) return {folder};
  std::vector<fs::path> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / "config.yaml")) runs.push_back(entry.path());
  std::ranges::sort(runs);
  if (runs.empty())
    throw CheckpointError("[status] " + folder.string() +
                          ": neither a run nor a folder of runs. Hint: runs lie in runs/NAME");
  return runs;
}

std::string summary_text(const RunSummary& run) {
  Rows rows = {{"run", run.folder + "  (" + run.state + ")"},
               {"step", std::to_string(run.step) + " of " + std::to_string(run.total_steps) +
                            ", epoch " + std::to_string(run.epoch + 1)}};
  if (run.state == "running" && run.seconds_to_go)
    rows.emplace_back("to go", readable_s(*run.seconds_to_go));
  if (run.state == "running" && run.job_seconds_left)
    rows.emplace_back("left of the job", readable_s(*run.job_seconds_left));
  rows.emplace_back("images/s",
                    fixed(run.images_per_s, 1) + " on " + std::to_string(run.ranks) + " ranks");
  rows.emplace_back("waiting for data", percent(run.data_wait_share));
  if (run.slowest_rank)
    rows.emplace_back("slowest rank", std::to_string(*run.slowest_rank) + " (" +
                                          fixed(run.slowest_ratio, 2) + " x the median)");
  if (run.loss) rows.emplace_back("loss", fixed(*run.loss, 4));
  if (run.best_auroc) rows.emplace_back("best validation AUROC", fixed(*run.best_auroc, 4));
  rows.emplace_back("checkpoint",
                    run.checkpoint.empty()
                        ? "none"
                        : run.checkpoint + ", " + readable_s(run.checkpoint_age_s) + " ago");
  if (run.written_age_s >= 0)
    rows.emplace_back("last word", readable_s(run.written_age_s) + " ago");
  rows.emplace_back(
      "started on",
      run.host + (run.job.empty() ? "" : ", job " + run.job) +
          (run.restarts > 0 ? ", resumed " + std::to_string(run.restarts) + " times" : ""));
  for (const auto& text : run.stragglers) rows.emplace_back("straggler", text);
  if (!run.last_words.empty()) rows.emplace_back("post-mortem", run.last_words);
  return aligned(rows);
}

std::string summary_json(const RunSummary& run) {
  const auto optional = [](const auto& value) -> nlohmann::ordered_json {
    if (!value || !std::isfinite(static_cast<double>(*value))) return nullptr;
    return *value;
  };
  const nlohmann::ordered_json json = {{"folder", run.folder},
                                       {"state", run.state},
                                       {"step", run.step},
                                       {"total_steps", run.total_steps},
                                       {"epoch", run.epoch},
                                       {"ranks", run.ranks},
                                       {"restarts", run.restarts},
                                       {"images_per_s", run.images_per_s},
                                       {"data_wait_share", run.data_wait_share},
                                       {"slowest_rank", optional(run.slowest_rank)},
                                       {"slowest_ratio", run.slowest_ratio},
                                       {"loss", optional(run.loss)},
                                       {"best_auroc", optional(run.best_auroc)},
                                       {"seconds_to_go", optional(run.seconds_to_go)},
                                       {"job_seconds_left", optional(run.job_seconds_left)},
                                       {"checkpoint", run.checkpoint},
                                       {"checkpoint_age_s", run.checkpoint_age_s},
                                       {"written_age_s", run.written_age_s},
                                       {"host", run.host},
                                       {"job", run.job},
                                       {"stragglers", run.stragglers},
                                       {"postmortem", run.last_words}};
  return json.dump();
}

std::vector<RunGroup> compare_runs(const std::vector<RunSummary>& runs) {
  static const std::set<std::string> kOwn = {"run.seed", "run.name", "run.dir"};
  std::vector<std::string> differing;
  for (const auto& [key, value] : runs.front().config)
    if (!kOwn.contains(key) && std::ranges::any_of(runs, [&](const RunSummary& run) {
          return run.config.at(key) != value;
        }))
      differing.push_back(key);
  std::vector<RunGroup> groups;
  for (const auto& run : runs) {
    std::string settings;
    for (const auto& key : differing)
      settings += (settings.empty() ? "" : " ") + key + "=" + run.config.at(key);
    auto group = std::ranges::find(groups, settings, &RunGroup::settings);
    if (group == groups.end()) {
      groups.push_back({});
      group = groups.end() - 1;
      group->settings = settings;
    }
    group->runs.push_back(&run);
  }
  for (auto& group : groups) {
    std::vector<double> scores;
    for (const auto* run : group.runs)
      if (run->best_auroc) scores.push_back(*run->best_auroc);
    group.scored = static_cast<int>(scores.size());
    if (scores.empty()) continue;
    group.mean_auroc =
        std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
    double squares = 0;
    for (const double s : scores) squares += (s - group.mean_auroc) * (s - group.mean_auroc);
    if (scores.size() > 1)
      group.sd_auroc = std::sqrt(squares / static_cast<double>(scores.size() - 1));
  }
  return groups;
}

std::string comparison_text(const std::vector<RunSummary>& runs) {
  std::vector<std::vector<std::string>> lines = {
      {"run", "state", "step", "of", "images/s", "data wait", "best AUROC"}};
  for (const auto& run : runs)
    lines.push_back({run.name, run.state, std::to_string(run.step), std::to_string(run.total_steps),
                     fixed(run.images_per_s, 1), percent(run.data_wait_share),
                     run.best_auroc ? fixed(*run.best_auroc, 4) : "-"});
  std::string text = columns(lines);
  if (runs.size() < 2) return text;
  std::vector<std::vector<std::string>> groups = {
      {"settings that differ", "runs", "best validation AUROC, mean ± sd"}};
  for (const auto& group : compare_runs(runs))
    groups.push_back({group.settings.empty() ? "none but the seed" : group.settings,
                      std::to_string(group.runs.size()),
                      group.scored == 0 ? std::string("-")
                                        : fixed(group.mean_auroc, 4) +
                                              (group.scored > 1 ? " ± " + fixed(group.sd_auroc, 4)
                                                                : std::string(" (one run)"))});
  return text + "\n" + columns(groups);
}

}  // namespace chexnet
