#include "submit_checks.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/patient_ids.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/hosts.hpp"
#include "chexnet/report/run_files.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/train/run/recipe.hpp"
#include "chexnet/train/run/run_decisions.hpp"

namespace chexnet {
namespace {

// A quote that is not closed would end the job once it has its hosts.
void check_setup(const std::vector<std::string>& setup) {
  if (setup.empty()) return;
  std::string lines;
  for (const auto& line : setup) lines += line + "\n";
  if (output_of({"bash", "-n", "-c", lines}).exit_code != 0)
    throw ConfigError(
        "[submit] the lines of --setup and of the site file's setup are no "
        "commands (bash says why above). Hint: is a quote closed, a name with "
        "blanks quoted?");
}

// What train would find only once the job has its hosts.
void settle_ranks(const Config& config, JobRequest& request) {
  agree_on_ranks(config.launch, request);
  if (config.launch.mpi == MpiFamily::kMpich) request.srun_mpi = "pmi2";
  if (config.train.batch)  // else chosen by the ranks
    check_batch(config.train, *config.train.batch, total_ranks(request));
}

// Apptainer shows a container the home of its user; Pyxis gives it one that
// goes with it.
void require_pseudonym_key(const JobRequest& request, const Config& config) {
  const bool pyxis = !request.container.empty() && !is_sif(request.container);
  if (!pyxis || !writes_pseudonyms(config) || !config.privacy.key.empty())
    return;
  throw ConfigError(
      "[submit] --container {}: patients get pseudonyms, whose key would be in "
      "the home of a container and go with it, so no other start could go on. "
      "Hint: --set privacy.key=/FILE in a folder of the host that is written "
      "to, which the first run makes",
      request.container);
}

// "train.momentum changes nothing beside the other settings".
std::string why_equal(const SweepPoint& a, const Config& of_a,
                      const SweepPoint& b, const Config& of_b) {
  std::vector<std::string> reasons;
  for (size_t i = 0; i < a.assignments.size(); ++i) {
    const std::string& assignment = a.assignments[i];
    if (assignment == b.assignments[i]) continue;
    const std::string key = assignment.substr(0, assignment.find('='));
    const ConfigOption& option = *find_option(key);
    const bool is_one = option_text(option, of_a) == option_text(option, of_b);
    std::string otherwise = " changes nothing beside the other settings";
    if (option.is_path)
      otherwise = " names one place in both";
    else if (key == "train.lr_scaling")
      otherwise = " changes nothing where train.batch is train.lr_base_batch";
    reasons.push_back(key + (is_one ? " has one value in both" : otherwise));
  }
  return listed(reasons);
}

// A login node may not see what the hosts of the run do.
void warn_if_absent(const std::string& named_by, const std::string& path,
                    const std::string& effect) {
  std::error_code error;
  if (!is_s3(path) && !std::filesystem::exists(path, error))
    log_warning("[submit] " + named_by + ": " + path +
                " is not there on this host. Hint: if the hosts of the run do "
                "not have it either, " +
                effect);
}

}  // namespace

void check_may_hold_sweep(const std::filesystem::path& folder,
                          const std::vector<SweepPoint>& points) {
  std::error_code error;
  if (std::filesystem::exists(folder / "config.yaml", error))
    throw CheckpointError(
        "[submit] {}: holds a run, and would get those of the sweep. Hint: "
        "--out FOLDER, one of the sweep's own",
        folder.string());
  // Also of runs that ended before they had a config.yaml.
  const bool went_before = std::ranges::any_of(points, [&](const auto& point) {
    return std::filesystem::exists(point.run_folder, error);
  });
  if (!went_before && !has_runs_below(folder)) check_may_hold_run(folder);
}

void check_local_points(const std::vector<Config>& configs) {
  for (const auto& config : configs) {
    const LaunchConfig& launch = config.launch;
    if (!launch.hostfile.empty()) read_hostfile(launch.hostfile);
    if (config.train.batch && launch.ranks > 0)
      check_batch(config.train, *config.train.batch,
                  static_cast<int>(launch.ranks));
  }
}

// A run that repeats another would cost as much and be compared as if the two
// differed.
void refuse_equal_points(const std::vector<SweepPoint>& points,
                         const std::vector<Config>& configs) {
  std::map<std::string, size_t> point_of;  // by the run's recipe
  for (size_t i = 0; i < points.size(); ++i) {
    const auto [other, is_new] = point_of.insert({recipe_text(configs[i]), i});
    if (is_new) continue;
    const size_t j = other->second;
    throw ConfigError(
        "[submit] --sweep: {} and {} would be the same run under two names: "
        "{}. Hint: leave one out, of a grid by two sweeps in place of one; "
        "`chexnet-train config KEY` says what a key is for",
        points[j].run_folder, points[i].run_folder,
        why_equal(points[j], configs[j], points[i], configs[i]));
  }
}

std::string rungs_of(const Config& config,
                     const std::vector<std::string>& lists, size_t points) {
  static const std::set<std::string> kOthers = {
      "run.seed",        "train.epochs",       "train.max_steps",
      "train.rungs",     "checkpoint.best",    "data.fold",
      "data.split_seed", "data.val_fraction",  "data.test_fraction",
      "data.stratify",   "data.train_list",    "data.val_list",
      "data.test_list",  "data.filter",        "data.exclude",
      "data.findings",   "data.finding_names", "data.blank"};
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw ConfigError("[submit] --stop-losers: {}. Hint: {}", what, hint);
  };
  const bool by_loss = config.checkpoint.best == BestBy::kLoss;
  for (const auto& list : lists) {
    const std::string key = list.substr(0, list.find('='));
    if (by_loss &&
        (key.starts_with("train.loss") || key == "train.class_weights"))
      refuse("losses that differ in " + key + " do not compare",
             "checkpoint.best=auroc");
    if (kOthers.contains(key) || key.starts_with("eval.") ||
        key.starts_with("data.manifest."))
      refuse("runs that differ in " + key +
                 " have no scores that compare after an epoch",
             "sweep settings of training alone; `submit --seeds` trains the "
             "best one several times afterwards");
  }
  if (points < 3)
    refuse("of " + counted(static_cast<int64_t>(points), "run") +
               " a third is none",
           "three at least");
  if (config.train.max_steps > 0)
    refuse("train.max_steps may end a run before an epoch",
           "train.epochs alone");
  const int64_t every = config.eval.every_epochs;
  if (every == 0 || static_cast<double>(every) >= config.train.epochs)
    refuse("eval.every_epochs=" + std::to_string(every) +
               " has no score before the end",
           "eval.every_epochs=1");
  std::string rungs;
  auto epochs = static_cast<int64_t>(config.train.epochs);
  for (size_t runs = points; runs >= 3 && epochs >= 3; runs /= 3) {
    epochs /= 3;
    rungs = std::to_string(epochs) + (rungs.empty() ? "" : ",") + rungs;
  }
  if (rungs.empty())
    refuse("of " + number_text(config.train.epochs) +
               " epochs a third is less than one",
           "train.epochs of three at least");
  return "train.rungs=[" + rungs + "]";
}

void settle_job(const std::vector<Config>& configs, JobRequest& request) {
  check_setup(request.setup);
  for (const auto& config : configs) {
    require_pseudonym_key(request, config);
    settle_ranks(config, request);
  }
}

void warn_of_job(const std::vector<Config>& configs,
                 const JobRequest& request) {
  if (request.cpus_per_rank == 0)
    log_warning(
        "[submit] each rank gets one core, for compute and loader threads "
        "together. Hint: --cpus-per-rank N, or cpus_per_rank in the site file");
  const bool idle = request.gpus_per_node > 0 &&
                    std::ranges::any_of(configs, [](const Config& config) {
                      return config.launch.device == DeviceKind::kCpu;
                    });
  if (idle)
    log_warning(
        "[submit] the job has " + counted(request.gpus_per_node, "GPU") +
        " on each host, and launch.device is cpu: they would be idle. "
        "Hint: launch.device=auto, or no --gpus-per-node (gpus_per_node "
        "of the site file)");
}

void warn_of_absent_paths(const std::vector<Config>& configs,
                          const Strings& mounts) {
  std::set<std::string> tables, weights = {"none"};
  for (const auto& config : configs) {
    for (const auto& path : config.data.manifest.path)
      if (tables.insert(path).second)
        warn_if_absent("data.manifest.path", path, "it ends with exit code 8");
    if (weights.insert(config.model.weights).second)
      warn_if_absent("model.weights", config.model.weights,
                     "it ends with exit code 4");
  }
  for (const auto& mount : mounts)
    warn_if_absent("--mount", parsed_mount(mount).source,
                   "its container does not start");
}

}  // namespace chexnet
