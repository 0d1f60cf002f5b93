#include "chexnet/report/openmetrics.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "chexnet/config/load.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "run_events.hpp"

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
         ",folder=" + label_value(fs::absolute(run.folder).string());
}

// One gauge of all runs.
class Family {
 public:
  Family(std::string_view name, std::string_view help)
      : name_("chexnet_train_" + std::string(name)) {
    text_ = "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ +
            " gauge\n";
  }
  void add(const RunSummary& run, double value,
           const std::string& further_labels = "") {
    text_ += name_ + "{" + identity(run) + further_labels + "} " +
             value_text(value) + "\n";
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

constexpr Gauge kGauges[] = {
    {"step", "Steps done.",
     [](const RunSummary& run) { return of_count(run.step); }},
    {"planned_steps", "Steps of the whole run.",
     [](const RunSummary& run) { return of_count(run.total_steps); }},
    {"epoch", "Epochs done.",
     [](const RunSummary& run) { return of_count(run.epoch); }},
    {"ranks", "Ranks of the last start.",
     [](const RunSummary& run) { return of_count(run.ranks); }},
    {"resumes", "Starts after the first.",
     [](const RunSummary& run) { return of_count(run.restarts); }},
    {"images_per_second", "Images a second of all ranks, lately.",
     [](const RunSummary& run) { return std::optional(run.images_per_s); }},
    {"data_wait_ratio", "Share of that time that was waiting for data.",
     [](const RunSummary& run) {
       return std::optional(run.data_wait_fraction);
     }},
    {"loss", "Mean training loss, lately.",
     [](const RunSummary& run) { return run.loss; }},
    {"slowest_rank_ratio",
     "Own time a step of the slowest rank against the median of the ranks.",
     [](const RunSummary& run) -> std::optional<double> {
       if (!run.slowest_rank) return std::nullopt;
       return run.slowest_ratio;
     }},
    {"straggler_reports", "Reports of ranks that stayed behind.",
     [](const RunSummary& run) {
       return of_count(static_cast<int64_t>(run.stragglers.size()));
     }},
    {"validation_auroc",
     "Mean AUROC on validation, at the best step if there is one.",
     [](const RunSummary& run) { return run.val_auroc; }},
    {"best_step", "Step of the checkpoint that was chosen on validation.",
     [](const RunSummary& run) -> std::optional<double> {
       if (run.best_step < 0) return std::nullopt;
       return of_count(run.best_step);
     }},
    {"written_timestamp_seconds", "When the run last wrote an event.",
     [](const RunSummary& run) { return run.written_s; }},
    {"checkpoint_timestamp_seconds", "When its last checkpoint was written.",
     [](const RunSummary& run) { return run.checkpoint_s; }},
    {"remaining_seconds", "Estimate until the last step.",
     [](const RunSummary& run) { return run.seconds_to_go; }},
    {"job_remaining_seconds", "Until the batch system ends the job.",
     [](const RunSummary& run) { return run.job_seconds_left; }},
    {"exit_code", "Of the error it ended by; 0 without one.",
     [](const RunSummary& run) { return of_count(run.exit_code); }}};

constexpr std::string_view kStates[] = {"running", "finished",   "stopped",
                                        "failed",  "aborted",    "died",
                                        "silent",  "not started"};

std::string state_text(const std::vector<RunSummary>& runs) {
  Family family("state", "1 for the state that the run is in, else 0.");
  for (const auto& run : runs)
    for (const auto state : kStates)
      family.add(run, run.state == state ? 1 : 0,
                 ",state=" + label_value(std::string(state)));
  return family.text();
}

std::string final_text(const std::vector<RunSummary>& runs) {
  Family family("final_auroc", "Mean AUROC of the final evaluation.");
  for (const auto& run : runs)
    for (const auto& [split, auroc] : run.final_auroc)
      family.add(run, auroc, ",split=" + label_value(split));
  return family.text();
}

std::string info_text(const std::vector<RunSummary>& runs) {
  Family family("run_info", "Always 1; where the run was last started.");
  for (const auto& run : runs)
    family.add(
        run, 1,
        ",host=" + label_value(run.host) + ",job=" + label_value(run.job));
  return family.text();
}

// Two runs may have one name, and their files one folder.
std::string file_name(const fs::path& run_folder) {
  const fs::path whole = fs::absolute(run_folder).lexically_normal();
  std::string name = whole.filename().string();
  if (name.empty()) name = whole.parent_path().filename().string();
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.';
  };
  constexpr size_t kLongest = 100, kDigits = 8;
  name.resize(std::min(name.size(), kLongest));
  std::ranges::replace_if(
      name, [&](char c) { return !is_plain(static_cast<unsigned char>(c)); },
      '_');
  return "chexnet_train_" + name + "_" +
         sha256_hex(whole.string()).substr(0, kDigits) + ".prom";
}

// Whoever runs the node exporter is another user.
void write_page(const fs::path& path, const RunSummary& run) {
  constexpr unsigned kReadByAll = 0644;
  OutputFile file(path, kReadByAll);
  file.write(openmetrics_text({run}));
  file.commit();
}

}  // namespace

std::string openmetrics_text(const std::vector<RunSummary>& runs) {
  std::string text = info_text(runs) + state_text(runs);
  for (const auto& gauge : kGauges) {
    Family family(gauge.name, gauge.help);
    for (const auto& run : runs)
      if (const auto value = gauge.value(run)) family.add(run, *value);
    text += family.text();
  }
  return text + final_text(runs) + "# EOF\n";
}

PrometheusFile::PrometheusFile(const fs::path& folder, fs::path run_folder)
    : path_(folder / file_name(run_folder)),
      run_folder_(std::move(run_folder)) {
  std::error_code error;
  if (fs::is_directory(folder, error) && access(folder.c_str(), W_OK) == 0)
    return;
  throw ConfigError(
      "[report] run.prometheus = " + folder.string() +
      ": no folder that this user may write in. Hint: make it on the host of "
      "rank 0, and name it to the node exporter "
      "(--collector.textfile.directory)");
}

void PrometheusFile::take(const nlohmann::json& event) {
  if (!run_) {
    run_ = summarize_run(run_folder_);  // the event is in its file
  } else {
    add_event(*run_, event);
    estimate_time_left(*run_);
    run_->written_s = std::floor(system_time_s());
  }
  const std::string kind = event.value("event", "");
  if (kind == "checkpoint") find_checkpoint(*run_);
  constexpr double kEvery_s = 5;  // often enough for who looks every 15 s
  const bool comes_often = kind == "train" || kind == "system";
  if (comes_often && now_s() - written_s_ < kEvery_s) return;
  write();
}

void PrometheusFile::write() {
  written_s_ = now_s();
  try {
    write_page(path_, *run_);
  } catch (const CheckpointError& e) {
    if (!warned_)
      log_warning(std::string(e.what()) +
                  ". The run goes on without it (run.prometheus)");
    warned_ = true;
  }
}

void renew_prometheus_file(const fs::path& run_folder) {
  try {
    std::error_code error;
    if (!fs::exists(run_folder / "config.yaml", error)) return;
    const fs::path folder =
        load_config({run_folder / "config.yaml"}, {}).run.prometheus;
    if (folder.empty()) return;
    write_page(folder / file_name(run_folder), summarize_run(run_folder));
  } catch (const Error& e) {
    log_warning(std::string(e.what()) + " (run.prometheus)");
  }
}

}  // namespace chexnet
