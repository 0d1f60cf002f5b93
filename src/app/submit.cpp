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
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/patient_ids.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/container.hpp"
#include "chexnet/launch/job_script.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/report/waiting_run.hpp"
#include "chexnet/run/recipe.hpp"
#include "chexnet/run/run_folder.hpp"
#include "chexnet/train/trainer.hpp"
#include "job_hand_over.hpp"
#include "local_sweep.hpp"
#include "submit_options.hpp"

namespace chexnet {
namespace {

void override_with(const SubmitOptions& options, JobRequest& request) {
  const auto text = [](const std::string& given, std::string& into) {
    if (!given.empty()) into = given;
  };
  const auto count = [](int given, int& into) {
    if (given > 0) into = given;
  };
  text(options.account, request.account);
  text(options.partition, request.partition);
  text(options.time, request.time);
  if (const auto launcher = find_choice<JobLauncher>(options.launcher))
    request.launcher = *launcher;
  count(options.nodes, request.nodes);
  count(options.ranks_per_node, request.ranks_per_node);
  count(options.gpus_per_node, request.gpus_per_node);
  count(options.cpus_per_rank, request.cpus_per_rank);
  if (options.max_requeues >= 0) request.max_requeues = options.max_requeues;
  request.lines.insert(request.lines.end(), options.lines.begin(),
                       options.lines.end());
  request.setup.insert(request.setup.end(), options.setup.begin(),
                       options.setup.end());
  if (const auto scheduler = find_choice<Scheduler>(options.scheduler))
    request.scheduler = *scheduler;
  text(options.container, request.container);
  for (const auto& mount : options.mounts)
    request.mounts.push_back(parsed_mount(mount));
  if (!options.mounts.empty() && request.container.empty())
    throw ConfigError(
        "[submit] --mount " + options.mounts.front() +
        ": there is no container to show it. Hint: --container IMAGE, here or "
        "in the site file");
}

// A login node may not see what the job's hosts do.
void warn_if_absent(const std::string& named_by, const std::string& path,
                    const std::string& effect) {
  std::error_code error;
  if (!is_s3(path) && !std::filesystem::exists(path, error))
    log_warning("[submit] " + named_by + ": " + path +
                " is not there on this host. Hint: if the job's hosts do not "
                "have it either, " +
                effect);
}

void look_for_paths(const SubmitOptions& options, const Config& config) {
  for (const auto& path : config.data.manifest.path)
    warn_if_absent("data.manifest.path", path, "it ends with exit code 8");
  for (const auto& mount : options.mounts)
    warn_if_absent("--mount", parsed_mount(mount).source,
                   "its container does not start");
}

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
void check_job(const Config& config, JobRequest& request) {
  agree_on_ranks(config.launch, request);
  if (config.launch.mpi == MpiFamily::kMpich) request.srun_mpi = "pmi2";
  if (config.train.batch)  // else chosen by the ranks
    check_batch(config.train, *config.train.batch, total_ranks(request));
}

void say_cores(const JobRequest& request) {
  if (request.cpus_per_rank > 0) return;
  log_warning(
      "[submit] each rank gets one core, for compute and loader threads "
      "together. Hint: --cpus-per-rank N, or cpus_per_rank in the site file");
}

void warn_of_idle_gpus(const std::vector<Config>& configs,
                       const JobRequest& request) {
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

// A run that repeats another would cost as much and be compared as if the two
// differed.
void refuse_equal_points(const std::vector<SweepPoint>& points,
                         const std::vector<Config>& configs) {
  std::map<std::string, std::string> folder_of;  // by the run's recipe
  for (size_t i = 0; i < points.size(); ++i) {
    const auto [other, is_new] =
        folder_of.insert({recipe_text(configs[i]), points[i].run_folder});
    if (!is_new)
      throw ConfigError(
          "[submit] --sweep: " + other->second + " and " +
          points[i].run_folder +
          " would be the same run under two names. Hint: leave one out. "
          "train.lr_scaling changes a run whose train.batch is not "
          "train.lr_base_batch, and train.momentum one of sgd");
  }
}

std::string site_file_of(const SubmitOptions& options) {
  if (!options.site.empty()) return options.site;
  const char* site = std::getenv("CHEXNET_SITE");
  return site != nullptr ? site : "";
}

// Whose command line and site file say what of a job; looked at once.
JobRequest requested_job(const SubmitOptions& options, const Config& config,
                         const Invocation& invocation) {
  JobRequest request;
  request.program = invocation.command;
  request.scheduler = scheduler_here();
  const std::string site_file = site_file_of(options);
  if (!site_file.empty()) read_site_file(site_file, request);
  override_with(options, request);
  request.name = options.name.empty() ? config.run.name : options.name;
  const auto job_s = limit_s(request.time);
  if (!job_s)
    throw ConfigError(
        "[submit] --time " + request.time +
        " is no time. Hint: 24:00:00, 1-12:00:00 (days), or minutes");
  request.signal_s = signal_lead_s(*job_s, config.launch.stop_margin_s);
  request.arguments = options.files;
  for (const auto& assignment : options.set)
    request.arguments.insert(request.arguments.end(), {"--set", assignment});
  if (options.out.empty() && is_s3(config.run.dir))
    throw ConfigError("[submit] run.dir " + config.run.dir +
                      " is in an object store, and a job's script and output "
                      "need a folder. Hint: --out FOLDER for a run there; a "
                      "script of your own may start `chexnet-train train "
                      "--out s3://… --resume auto`");
  request.run_folder = options.out;
  if (options.out.empty()) request.run_folder = run_folder_of(config).string();
  if (!options.sweep.empty() || options.seeds > 0)
    request.points =
        sweep_points(options.sweep, options.seeds, request.run_folder);
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

// Apptainer shows a container the home of its user; Pyxis gives it one that
// goes with it.
void check_pseudonym_key(const JobRequest& request, const Config& config) {
  const bool pyxis = !request.container.empty() && !is_sif(request.container);
  if (!pyxis || !writes_pseudonyms(config) || !config.privacy.key.empty())
    return;
  throw ConfigError(
      "[submit] --container " + request.container +
      ": patients get pseudonyms, whose key would be in the home of a "
      "container and go with it, so no other start could go on. Hint: --set "
      "privacy.key=/FILE in a folder of the host that is written to, which "
      "the first run makes");
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
  const auto here = std::filesystem::current_path();
  request.working_folder = here.string();
  request.mounts = with_mounts_of(paths, here, request.mounts);
}

// For `status`. What cannot be noted takes nothing from a job that was taken.
void note_waiting(const Config& config, const std::string& run_folder,
                  const std::string& job) {
  const mode_t mask = umask(0);
  // As the run itself will make its folder; later jobs get ours.
  umask(config.run.world_readable ? mask : mask | 007);
  try {
    note_waiting_run(run_folder, job);
  } catch (const Error& e) {
    log_warning(std::string(e.what()) +
                " (the job is submitted; status will show the run when it has "
                "begun)");
  }
  umask(mask);
}

int run(const SubmitOptions& options, Invocation& invocation) {
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
  refuse_equal_points(request.points, configs);
  if (local) return options.dry_run ? print_sweep(request) : run_sweep(request);
  check_setup(request.setup);
  for (const auto& of_point : configs) {
    check_pseudonym_key(request, of_point);
    check_job(of_point, request);
  }
  request.variables = set_variables(variables);
  if (!request.container.empty()) show_paths(options, configs, request);
  const std::string script = job_script(request);
  say_cores(request);
  warn_of_idle_gpus(configs, request);
  look_for_paths(options, config);
  if (options.dry_run) {
    std::cout << script << std::flush;
    return 0;
  }
  hand_over(request, script,
            [&](const std::string& run_folder, const std::string& job) {
              note_waiting(config, run_folder, job);
            });
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
