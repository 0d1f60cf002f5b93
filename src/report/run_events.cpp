#include "run_events.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

using nlohmann::json;

// Ties alone give exactly 0.5 to each finding, as the weights of a rate that
// was too high do.
bool is_collapsed(const json& auroc_of_finding) {
  if (!auroc_of_finding.is_object() || auroc_of_finding.empty()) return false;
  return std::ranges::all_of(auroc_of_finding, [](const json& auroc) {
    return auroc.is_null() || auroc == 0.5;
  });
}

// Figures with their ranks, least first.
std::vector<std::pair<double, int>> by_figure(const ByRank& of_ranks) {
  std::vector<std::pair<double, int>> figures;
  for (const auto& [rank, value] : of_ranks) figures.emplace_back(value, rank);
  std::ranges::sort(figures);
  return figures;
}

ByRank ranks_of(const json& event, const char* key) {
  return figures_by_rank(event.value(key, json::object()));
}

void read_gpus(RunSummary& run, const json& event) {
  const ByRank percents = ranks_of(event, "gpu_utilization");
  run.gpu.reset();
  if (percents.empty()) return;
  const auto least = by_figure(percents).front();
  const auto memory = by_figure(ranks_of(event, "gpu_memory_bytes"));
  const ByRank power = ranks_of(event, "gpu_power_w");
  // Of some of them alone a sum would mislead.
  const bool knows_power = power.size() == percents.size() &&
                           !std::cmp_less(power.size(), run.ranks);
  run.gpu = GpuUse{static_cast<int>(percents.size()),
                   sum_of(percents) / static_cast<double>(percents.size()),
                   least.first,
                   least.second,
                   memory.empty() ? 0 : memory.back().first,
                   knows_power ? sum_of(power) : 0};
}

void read_ranks(RunSummary& run, const json& event) {
  if (event["event"] == "system") read_gpus(run, event);
  const auto times = by_figure(ranks_of(event, "own_ms_per_step"));
  if (times.size() < 2) return;
  run.slowest_rank = times.back().second;
  run.slowest_ratio =
      times.back().first / std::max(1e-9, times[(times.size() - 1) / 2].first);
}

double number_of(const json& event, const char* key, double other) {
  return event.contains(key) && event[key].is_number()
             ? event[key].get<double>()
             : other;
}

// A line counts images since the start of training; one that does not go on
// from the line before (a resume) is of no known time.
void add_waits(RunWaits& waits, const json& line) {
  const auto images = line.value("images", int64_t{0});
  const auto step = line.value("step", int64_t{0});
  const double rate = number_of(line, "images_per_s", 0);
  if (rate > 0 && images > waits.images_seen) {
    waits.seconds += static_cast<double>(images - waits.images_seen) / rate;
    waits.data_s += number_of(line, "data_wait_s", 0);
    waits.allreduce_s += number_of(line, "allreduce_wait_s", 0);
    waits.stalls += line.value("data_stalls", int64_t{0});
    waits.steps += step - waits.last_step;
  }
  waits.images_seen = images;
  waits.last_step = step;
}

// The first line after a resume counts the steps before it, too; its rate and
// waits are of those after it.
void begin_waits(RunSummary& run, int64_t step) {
  RunWaits& waits = run.waits;
  if (step <= waits.last_step) return;
  waits.images_seen += run.batch * (step - waits.last_step);
  waits.last_step = step;
}

void add_train(RunSummary& run, const json& event) {
  run.step = event.value("step", run.step);
  const double steps =
      std::min(number_of(event, "steps", 1),
               static_cast<double>(run.step - run.waits.last_step));
  add_waits(run.waits, event);
  if (const int64_t epoch = event.value("epoch", run.epoch);
      epoch != run.epoch) {
    run.epoch = epoch;
    run.epoch_end_step = run.step;
  }
  run.loss = number_of(event, "loss", std::nan(""));
  run.images_per_s = number_of(event, "images_per_s", 0);
  const double seconds =
      static_cast<double>(run.batch) * steps / std::max(1e-9, run.images_per_s);
  run.data_wait_fraction.reset();
  if (run.images_per_s > 0)
    run.data_wait_fraction = std::min(
        1.0, number_of(event, "data_wait_s", 0) / std::max(1e-9, seconds));
  run.job_seconds_left.reset();
  if (event.contains("job_seconds_left"))
    run.job_seconds_left = number_of(event, "job_seconds_left", 0);
}

}  // namespace

void add_event(RunSummary& run, const json& event) {
  const std::string kind = event.value("event", "");
  // status shows it in a terminal.
  const auto text = [&](const char* key) {
    return printable(event.value(key, ""));
  };
  const auto figure = [&](const char* key) -> std::optional<double> {
    if (!event.contains(key) || !event[key].is_number()) return std::nullopt;
    return event[key].get<double>();
  };
  const auto mean_auroc = [&] {
    MeanFigure mean;
    mean.value = figure("mean_auroc");
    const auto low = figure("mean_auroc_low"), high = figure("mean_auroc_high");
    if (low && high) mean.interval = PercentileInterval{{*low, *high}};
    mean.findings = event.value("findings_in_mean", size_t{0});
    mean.rough = event.value("mean_is_rough", "") == "yes";
    return mean;
  };
  if (kind == "start" || kind == "restart") {
    run.total_steps = event.value("total_steps", run.total_steps);
    run.ranks = event.value("ranks", run.ranks);
    run.host = text("host");
    run.job = text("job");
    run.restarts += kind == "restart" ? 1 : 0;
    begin_waits(run, event.value("step", int64_t{0}));
    run.gpu_totals.reset();
    run.state = "running";
    run.error.clear();
    run.exit_code = 0;
    run.rung.clear();
  } else if (kind == "train") {
    add_train(run, event);
  } else if (kind == "val") {
    const bool best = event.value("best", "") == "yes";
    const std::string scored_on = text("validation_sha256");
    if (std::exchange(run.validation_sha256, scored_on) != scored_on)
      run.best_step = -1;  // a resume has begun anew
    if (best || run.best_step < 0) {
      run.val_auroc = mean_auroc();
      run.val_is_collapsed = run.val_auroc.value == 0.5 &&
                             is_collapsed(event.value("auroc", json()));
    }
    if (best) run.best_step = event.value("step", run.best_step);
  } else if (kind == "system" || kind == "ranks") {
    read_ranks(run, event);
  } else if (kind == "gpus") {
    run.gpu_totals = gpu_totals(event);
  } else if (kind == "rung") {
    run.rung = text("sentence");
  } else if (kind == "straggler") {
    run.stragglers.push_back("rank " + std::to_string(event.value("rank", 0)) +
                             " on " + text("host") + ": " + text("cause"));
  } else if (kind == "final") {
    run.final_auroc[text("split")] = mean_auroc();
  } else if (kind == "error") {
    // A later start that was refused takes nothing from a run that is complete.
    if (run.state == "finished") return;
    run.state = "failed";
    run.error = text("sentence");
    run.exit_code = event.value("exit_code", 0);
  } else if (kind == "stop" || kind == "end") {
    run.state = kind == "stop" ? "stopped" : "finished";
    // Steps since the last train line count, too.
    run.step = std::max(run.step, event.value("step", run.step));
  }
}

void estimate_time_left(RunSummary& run) {
  run.seconds_to_go.reset();
  if (run.images_per_s <= 0 || run.total_steps <= run.step) return;
  run.seconds_to_go = static_cast<double>(run.total_steps - run.step) *
                      static_cast<double>(run.batch) / run.images_per_s;
}

}  // namespace chexnet
