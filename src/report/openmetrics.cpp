#include "chexnet/report/openmetrics.hpp"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "chexnet/core/json.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// As the text format writes it. Bytes that are not UTF-8 become replacement
// characters: one such name would cost the whole page.
std::string label_value(const std::string& text) {
  const std::string valid =
      nlohmann::json::parse(json_text(Json(text))).get<std::string>();
  std::string escaped;
  for (const char c : valid) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n')
      escaped += "\\n";
    else
      escaped += c;
  }
  return '"' + escaped + '"';
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return number_text(value);
}

std::string identity(const RunSummary& run) {
  return "run=" + label_value(run.name) +
         ",folder=" + label_value(folder_label(run.folder));
}

using Runs = std::map<std::string, const RunSummary*>;  // by identity()

// One gauge, for all runs.
class Family {
 public:
  Family(std::string_view name, std::string_view help)
      : name_("chexnet_train_" + std::string(name)) {
    text_ = "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ +
            " gauge\n";
  }
  void add(const std::string& labels, double value) {
    text_ += name_ + "{" + labels + "} " + value_text(value) + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

struct Gauge {
  std::string_view name, help;
  std::optional<double> (*value)(const RunSummary& run);
};

std::optional<double> of_count(int64_t count) {
  return static_cast<double>(count);
}

// Gauges that only metrics.jsonl gives.
std::optional<double> by_events(const RunSummary& run, int64_t count) {
  return run.has_events ? of_count(count) : std::nullopt;
}

std::optional<double> positive(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<double> while_running(const RunSummary& run,
                                    const std::optional<double>& value) {
  return run.state == "running" ? value : std::nullopt;
}

std::optional<double> end_of(const MeanFigure& mean, double Interval::*end) {
  if (!mean.interval) return std::nullopt;
  return mean.interval->interval.*end;
}

constexpr Gauge kGauges[] = {
    {"step", "Steps done.",
     [](const RunSummary& run) { return by_events(run, run.step); }},
    {"planned_steps", "Steps of the whole run.",
     [](const RunSummary& run) {
       return positive(static_cast<double>(run.total_steps));
     }},
    {"epoch", "Epochs done.",
     [](const RunSummary& run) { return by_events(run, run.epoch); }},
    {"ranks", "Ranks of the last start.",
     [](const RunSummary& run) {
       return positive(static_cast<double>(run.ranks));
     }},
    {"resumes", "Starts after the first.",
     [](const RunSummary& run) { return by_events(run, run.restarts); }},
    {"images_per_second", "Images per second of all ranks, lately.",
     [](const RunSummary& run) { return positive(run.images_per_s); }},
    {"data_wait_ratio",
     "Share of the time that was waiting for data, lately, mean of the ranks.",
     [](const RunSummary& run) { return run.data_wait_fraction; }},
    {"gpu_busy_ratio", "Share of the time that GPUs computed, lately, mean.",
     [](const RunSummary& run) -> std::optional<double> {
       return run.gpu ? std::optional(run.gpu->percent / 100) : std::nullopt;
     }},
    {"gpu_busy_least_ratio", "The same, of the GPU with the least.",
     [](const RunSummary& run) -> std::optional<double> {
       return run.gpu ? std::optional(run.gpu->least_percent / 100)
                      : std::nullopt;
     }},
    {"gpu_memory_bytes", "Memory in use on the GPU with the most, lately.",
     [](const RunSummary& run) {
       return positive(run.gpu ? run.gpu->most_memory_bytes : 0);
     }},
    {"gpu_power_watts", "Power of all GPUs of the run, lately.",
     [](const RunSummary& run) {
       return positive(run.gpu ? run.gpu->power_w : 0);
     }},
    {"joules_per_image", "Energy of the GPUs for an image, lately.",
     [](const RunSummary& run) { return run.joules_per_image(); }},
    {"gpu_busy_total_ratio",
     "Share of the time that GPUs computed since the last start, mean.",
     [](const RunSummary& run) -> std::optional<double> {
       return run.gpu_totals ? std::optional(run.gpu_totals->utilization / 100)
                             : std::nullopt;
     }},
    {"gpu_energy_joules",
     "Energy of all GPUs in training since the last start.",
     [](const RunSummary& run) {
       return positive(run.gpu_totals ? run.gpu_totals->energy_j : 0);
     }},
    {"gpu_clock_hertz", "Clock of the GPUs since the last start, mean.",
     [](const RunSummary& run) {
       return positive(run.gpu_totals ? 1e6 * run.gpu_totals->clock_mhz : 0);
     }},
    {"gpu_throttled_ratio",
     "Share of the time that the GPU with the most was throttled.",
     [](const RunSummary& run) -> std::optional<double> {
       return run.gpu_totals ? std::optional(run.gpu_totals->throttled_fraction)
                             : std::nullopt;
     }},
    {"flops_utilization_ratio",
     "FLOP/s of the steps of what the GPUs could, since the last start.",
     [](const RunSummary& run) -> std::optional<double> {
       return run.gpu_totals ? run.gpu_totals->flops_utilization : std::nullopt;
     }},
    {"loss", "Mean training loss, lately.",
     [](const RunSummary& run) { return run.loss; }},
    {"slowest_rank_ratio",
     "Own time per step of the slowest rank against the median of the ranks.",
     [](const RunSummary& run) { return run.slowest_ratio; }},
    {"straggler_reports", "Reports of ranks that stayed behind.",
     [](const RunSummary& run) {
       return of_count(static_cast<int64_t>(run.stragglers.size()));
     }},
    {"validation_auroc",
     "Mean AUROC on validation, at the best step if there is one.",
     [](const RunSummary& run) { return run.val_auroc.value; }},
    {"validation_auroc_low", "Lower end of its 95 % interval, by patient.",
     [](const RunSummary& run) {
       return end_of(run.val_auroc, &Interval::low);
     }},
    {"validation_auroc_high", "Upper end of its 95 % interval, by patient.",
     [](const RunSummary& run) {
       return end_of(run.val_auroc, &Interval::high);
     }},
    {"best_step", "Step of the checkpoint that was chosen on validation.",
     [](const RunSummary& run) -> std::optional<double> {
       if (run.best_step < 0) return std::nullopt;
       return of_count(run.best_step);
     }},
    {"written_timestamp_seconds",
     "When the run last wrote an event, as Unix time.",
     [](const RunSummary& run) { return run.written_s; }},
    {"checkpoint_timestamp_seconds",
     "When the last checkpoint was written, as Unix time.",
     [](const RunSummary& run) { return run.checkpoint_s; }},
    {"remaining_seconds",
     "Seconds until the last step (estimated), while it runs.",
     [](const RunSummary& run) {
       return while_running(run, run.seconds_to_go);
     }},
    {"job_remaining_seconds",
     "Seconds until the batch system ends the job, while it runs.",
     [](const RunSummary& run) {
       return while_running(run, run.job_seconds_left);
     }},
    {"exit_code",
     "Exit code of the error that the run ended by, 0 without one.",
     [](const RunSummary& run) { return of_count(run.exit_code); }}};

constexpr std::string_view kStates[] = {
    "running", "finished", "stopped",     "failed",  "aborted",
    "died",    "silent",   "not started", "waiting", kEnsemble};

std::string state_text(const Runs& runs) {
  Family family("state", "1 for the state that the run is in, else 0.");
  for (const auto& [labels, run] : runs)
    for (const auto state : kStates)
      family.add(labels + ",state=" + label_value(std::string(state)),
                 run->state == state ? 1 : 0);
  return family.text();
}

std::string final_text(const Runs& runs) {
  Family means("final_auroc", "Mean AUROC of the final evaluation.");
  Family lows("final_auroc_low", "Lower end of its 95 % interval, by patient.");
  Family highs("final_auroc_high",
               "Upper end of its 95 % interval, by patient.");
  for (const auto& [labels, run] : runs)
    for (const auto& [split, mean] : run->final_auroc) {
      const std::string of_split = labels + ",split=" + label_value(split);
      if (mean.value) means.add(of_split, *mean.value);
      if (!mean.interval) continue;
      lows.add(of_split, mean.interval->interval.low);
      highs.add(of_split, mean.interval->interval.high);
    }
  return means.text() + lows.text() + highs.text();
}

// Prometheus itself puts a label `job` on what it reads.
std::string info_text(const Runs& runs) {
  Family family("run_info", "Always 1; where the run was last started.");
  for (const auto& [labels, run] : runs)
    family.add(labels + ",host=" + label_value(run->host) +
                   ",batch_job=" + label_value(run->job),
               1);
  return family.text();
}

}  // namespace

std::string folder_label(const fs::path& run_folder) {
  std::string path = fs::absolute(run_folder).lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string openmetrics_text(
    const std::vector<RunSummary>& list,
    const std::function<void(const std::string&)>& warn) {
  Runs runs;
  for (const auto& run : list) {
    const auto [first, is_new] = runs.emplace(identity(run), &run);
    if (!is_new &&
        folder_label(first->second->folder) != folder_label(run.folder))
      warn("[status] " + run.folder +
           ": another run has the same labels, so this one is left out");
  }
  std::string text = info_text(runs) + state_text(runs);
  for (const auto& gauge : kGauges) {
    Family family(gauge.name, gauge.help);
    for (const auto& [labels, run] : runs)
      if (const auto value = gauge.value(*run)) family.add(labels, *value);
    text += family.text();
  }
  return text + final_text(runs) + "# EOF\n";
}

}  // namespace chexnet
