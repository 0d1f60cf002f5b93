#include "run_folders.hpp"

#include <set>

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/report/waiting_run.hpp"

namespace chexnet {

namespace fs = std::filesystem;

// --no-images would not know what to hide of an empty config.
void check_config_of(const fs::path& run) {
  check_holds_run(run);
  const fs::path file = run / "config.yaml";
  if (!load_config({file}, {}).data.manifest.path.empty()) return;
  throw ConfigError(
      "[config] {}:1: names no table (data.manifest.path), as that of each run "
      "does. Hint: the file is damaged; copy it again from where the run was "
      "made",
      file.string());
}

namespace {

// One of a folder of runs keeps nobody from comparing the others.
bool is_damaged(const fs::path& run) {
  try {
    check_config_of(run);
    return false;
  } catch (const Error& e) {
    log_warning(std::string(e.what()) + "; this run is left out");
    return true;
  }
}

}  // namespace

std::vector<fs::path> runs_below(const std::vector<std::string>& folders) {
  std::vector<fs::path> runs;
  std::set<fs::path> seen;
  std::error_code error;
  for (const auto& folder : folders) {
    std::vector<fs::path> found = {folder};
    if (!fs::exists(found[0] / "results.json", error))
      found = find_runs(folder);
    for (const auto& run : found) {
      if (run == folder)
        check_config_of(run);
      else if (is_waiting_run(run) || is_damaged(run))
        continue;
      if (is_new_run(run, seen)) runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace chexnet
