#include "chexnet/report/prometheus_file.hpp"

#include <sys/stat.h>
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
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/report/openmetrics.hpp"
#include "run_events.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "chexnet_train_", kSuffix = ".prom";

std::string name_at(const fs::path& run) {
  return fs::path(folder_label(run)).filename().string();
}

// Two runs may have one name, and their files one folder.
std::string file_name(const fs::path& run) {
  std::string name = name_at(run);
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.';
  };
  constexpr size_t kLongest = 100, kDigits = 8;
  name.resize(std::min(name.size(), kLongest));
  std::ranges::replace_if(
      name, [&](char c) { return !is_plain(static_cast<unsigned char>(c)); },
      '_');
  return std::string(kPrefix) + name + "_" +
         sha256_hex(folder_label(run)).substr(0, kDigits) +
         std::string(kSuffix);
}

// The `folder` of the first line that has one, or nothing.
fs::path place_in(const std::string& page) {
  constexpr std::string_view kLabel = "folder=\"";
  std::string folder;
  auto at = page.find(kLabel);
  if (at == std::string::npos) return {};
  for (at += kLabel.size(); at < page.size() && page[at] != '"'; ++at) {
    const bool escaped = page[at] == '\\' && ++at < page.size();
    folder += escaped && page[at] == 'n' ? '\n' : page[at];
  }
  return folder;
}

// Nobody else would ever remove them, and their gauges would stay for ever.
void remove_pages_of_gone_runs(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    struct stat info {};
    if (lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_uid != geteuid())
      continue;
    const fs::path run = place_in(read_text(entry.path()));
    std::error_code error;  // of a folder that cannot be seen just now
    if (run.is_absolute() && !fs::exists(run, error) && !error &&
        file_name(run) == name)
      fs::remove(entry.path(), error);
  }
}

// Whoever runs the node exporter is another user.
void write_page(const fs::path& path, RunSummary run) {
  run.name = name_at(run.folder);
  constexpr unsigned kReadByAll = 0644;
  OutputFile file(path, kReadByAll, "run.prometheus");
  file.write(openmetrics_text({run}));
  file.commit();
}

}  // namespace

PrometheusFile::PrometheusFile(const RunConfig& run, fs::path run_folder)
    : run_folder_(std::move(run_folder)),
      path_(fs::path(run.prometheus) / file_name(run_folder_)) {
  const fs::path folder = run.prometheus;
  std::error_code error;
  if (!fs::is_directory(folder, error) || access(folder.c_str(), W_OK) != 0)
    throw ConfigError(
        "[report] run.prometheus = {}: no folder that this user may write in. "
        "Hint: make it on the host of rank 0, and name it to the node exporter "
        "(--collector.textfile.directory)",
        folder.string());
  try {
    remove_pages_of_gone_runs(folder);
  } catch (const std::exception& e) {
    log_warning(std::string(e.what()) + " (run.prometheus)");
  }
}

void PrometheusFile::take(const nlohmann::json& event) {
  try {
    show(event);
  } catch (const std::exception& e) {
    if (!warned_)
      log_warning(std::string(e.what()) +
                  ". The run goes on without it (run.prometheus)");
    warned_ = true;
  }
}

void PrometheusFile::show(const nlohmann::json& event) {
  if (!run_) {
    run_ = summarize_run(run_folder_);  // the event is in its file
  } else {
    add_event(*run_, event);
    estimate_time_left(*run_);
    run_->written_s = std::floor(system_time_s());
  }
  const std::string kind = event.value("event", "");
  constexpr double kEvery_s = 5;  // often enough for a reader every 15 s
  const bool comes_often = kind == "train" || kind == "system";
  if (comes_often && now_s() - written_s_ < kEvery_s) return;
  written_s_ = now_s();
  find_checkpoint(*run_);
  write_page(path_, *run_);
}

void renew_prometheus_file(const fs::path& run_folder) {
  try {
    std::error_code error;
    if (!fs::exists(run_folder / "config.yaml", error)) return;
    const RunConfig run = load_config({run_folder / "config.yaml"}, {}).run;
    const fs::path folder = run.prometheus;
    // It may be of another host: that of rank 0.
    if (folder.empty() || !fs::is_directory(folder, error)) return;
    write_page(folder / file_name(run_folder), summarize_run(run_folder));
  } catch (const std::exception& e) {
    log_warning(std::string(e.what()) + " (run.prometheus)");
  }
}

}  // namespace chexnet
