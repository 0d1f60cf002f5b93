// submit: a batch job, an array of a sweep, or a sweep on this machine.
//
//   --dry-run          the script, or of a local sweep the commands, on stdout;
//                      nothing is submitted or run
//   --scheduler local  the points of a sweep one after another, each as
//                      `train --resume auto`: the same command again goes on
//                      with those that are not complete
//   else               the script is handed to sbatch or qsub from a private
//                      file
//
// What a run would refuse is refused here, for every point, before the job
// waits in a queue.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/launch/container.hpp"
#include "chexnet/report/run_files.hpp"
#include "chexnet/tools/jobs/job_script.hpp"
#include "chexnet/train/run/job_clock.hpp"
#include "chexnet/train/run/run_folder.hpp"
#include "chexnet/train/trainer.hpp"
#include "job_hand_over.hpp"
#include "local_sweep.hpp"
#include "submit_checks.hpp"
#include "submit_options.hpp"

namespace chexnet {
namespace {

// Whose command line and site file say what of a job; looked at once.
JobRequest requested_job(const SubmitOptions& options, const Config& config,
                         const Invocation& invocation) {
  JobRequest request;
  request.program = invocation.command;
  request.scheduler = scheduler_here();
  const std::string site_file = options.site_file();
  if (!site_file.empty()) read_site_file(site_file, request);
  options.apply_to(request);
  request.name = options.name.empty() ? config.run.name : options.name;
  const auto job_s = limit_s(request.time);
  if (!job_s)
    throw ConfigError(
        "[submit] --time {} is no time. Hint: 24:00:00, 1-12:00:00 (days), or "
        "minutes",
        request.time);
  request.signal_s = signal_lead_s(*job_s, config.launch.stop_margin_s);
  request.arguments = options.files;
  for (const auto& assignment : options.set)
    request.arguments.insert(request.arguments.end(), {"--set", assignment});
  request.run_folder =
      options.out.empty() ? run_folder_of(config).string() : options.out;
  if (options.stop_losers && options.sweep.empty())
    throw ConfigError(
        "[submit] --stop-losers is for sweeps. Hint: --sweep "
        "train.lr=1e-3,3e-4,1e-4");
  if (options.sweep.empty() && options.seeds == 0) return request;
  request.points =
      sweep_points(options.sweep, options.seeds, request.run_folder);
  if (options.stop_losers)
    request.arguments.insert(
        request.arguments.end(),
        {"--set", rungs_of(config, options.sweep, request.points.size())});
  check_may_hold_sweep(request.run_folder, request.points);
  return request;
}

// The config of a point with its run folder, refused where no run would take
// it. Adds the variables that it refers to.
Config config_of(const SweepPoint& point, const SubmitOptions& options,
                 Strings& variables) {
  auto set = options.set;
  set.insert(set.end(), point.assignments.begin(), point.assignments.end());
  Config config = load_config(
      {options.files.begin(), options.files.end()}, set, &variables,
      [&point](Config& loaded) { loaded.run.dir = point.run_folder; });
  check_run(config);
  JobClock::configured_s(config.launch);
  return config;
}

// Those of `names` that the environment holds, once each: an empty one counts
// as unset, and qsub refuses a job with a name that it does not find.
Strings set_variables(Strings names) {
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  std::erase_if(names, [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr || *value == '\0';
  });
  return names;
}

// What the container must show: the config files, what the configs name, and
// the run folder.
void show_paths(const SubmitOptions& options,
                const std::vector<Config>& configs, JobRequest& request) {
  std::vector<std::string> paths = options.files;
  for (const auto& config : configs) {
    const auto named = named_paths(config);
    paths.insert(paths.end(), named.begin(), named.end());
  }
  if (!request.points.empty()) paths.push_back(request.run_folder);
  const auto here = std::filesystem::current_path();
  request.working_folder = here.string();
  request.mounts = with_mounts_of(paths, here, request.mounts);
}

void refuse_keys_set_twice(const SubmitOptions& options) {
  for (const auto& list : options.sweep)
    refuse_set_twice(options.set, "--sweep", list.substr(0, list.find('=')));
  if (options.seeds > 0) refuse_set_twice(options.set, "--seeds", "run.seed");
  if (options.stop_losers && options.seeds > 0)
    throw ConfigError(
        "[submit] --stop-losers and --seeds: seeds of one setting would end at "
        "several times. Hint: `submit --seeds` trains the best one several "
        "times afterwards");
  if (options.stop_losers)
    refuse_set_twice(options.set, "--stop-losers", "train.rungs");
  if (!options.out.empty()) refuse_set_twice(options.set, "--out", "run.dir");
}

int run(const SubmitOptions& options, Invocation& invocation) {
  refuse_keys_set_twice(options);
  Strings variables;
  const Config config = load_config(
      {options.files.begin(), options.files.end()}, options.set, &variables);
  check_run(config);
  JobRequest request = requested_job(options, config, invocation);
  const bool local = options.scheduler == kLocal;
  if (local && request.points.empty())
    throw ConfigError(
        "[submit] --scheduler local is for sweeps. Hint: `chexnet-train train` "
        "runs one");
  std::vector<Config> configs;
  for (const auto& point : request.points)
    configs.push_back(config_of(point, options, variables));
  if (configs.empty())
    configs.push_back(config_of({request.run_folder, {}}, options, variables));
  for (const auto& of_run : configs) check_takes_run(of_run, Resume::kAuto);
  refuse_equal_points(request.points, configs);
  if (local) {
    check_local_points(configs);
    warn_of_absent_paths(configs, {});
    return options.dry_run ? print_sweep(request) : run_sweep(request);
  }

  settle_job(configs, request);
  request.variables = set_variables(variables);
  if (!request.container.empty()) show_paths(options, configs, request);
  const std::string script = job_script(request);
  warn_of_job(configs, request);
  warn_of_absent_paths(configs, options.mounts);
  if (options.dry_run)
    std::cout << script << std::flush;
  else
    hand_over(request, script);
  return 0;
}

}  // namespace

void add_submit(CLI::App& app, Invocation& invocation) {
  auto* command =
      app.add_subcommand("submit",
                         "train as a batch job (Slurm, PBS), or a sweep of "
                         "runs as an array");
  auto options = std::make_shared<SubmitOptions>();
  options->add_to(*command);
  command->callback([&invocation, options, command] {
    if (options->scheduler == kLocal) refuse_options_of_jobs(*command);
    invocation.run = [&invocation, options] {
      return run(*options, invocation);
    };
  });
}

}  // namespace chexnet
