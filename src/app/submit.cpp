// submit: a batch job, an array of a sweep, or a sweep on this machine.
//
//   --dry-run   the script, or of --local the commands, on stdout; nothing is
//               submitted or run
//   --local     the points of a sweep one after another, each as
//               `train --resume auto`: the same command again goes on with
//               those that are not complete
//   else        the script is handed to sbatch or qsub from a private file
//
// What a run would refuse is refused here, for every point, before the job
// waits in a queue.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/job_script.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/report/run_comparison.hpp"
#include "chexnet/run/run_folder.hpp"
#include "chexnet/train/trainer.hpp"

namespace chexnet {
namespace {

struct Options {
  std::vector<std::string> files, set, sweep, lines, setup;
  bool slurm = false, pbs = false, local = false, dry_run = false;
  int nodes = 0, ranks_per_node = 0, gpus_per_node = 0, cpus_per_rank = 0,
      max_requeues = -1, seeds = 0;
  std::string account, partition, time, name, site, launcher, out;
};

void override_with(const Options& options, JobRequest& request) {
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
  if (options.slurm) request.scheduler = Scheduler::kSlurm;
  if (options.pbs) request.scheduler = Scheduler::kPbs;
}

// What runs a point on this machine.
std::vector<std::string> command_of(const SweepPoint& point,
                                    const JobRequest& request) {
  std::vector<std::string> command = request.program;
  command.emplace_back("train");
  command.insert(command.end(), request.arguments.begin(),
                 request.arguments.end());
  for (const auto& assignment : point.assignments)
    command.insert(command.end(), {"--set", assignment});
  command.insert(command.end(),
                 {"--out", point.run_folder, "--resume", "auto"});
  return command;
}

// The points one after another on this machine; the others go on when one
// fails.
int run_here(const JobRequest& request) {
  int failed = 0, worst = 0;
  std::vector<RunSummary> runs;
  ParentSignals signals;
  for (size_t i = 0; i < request.points.size(); ++i) {
    const auto& point = request.points[i];
    log_info("run " + std::to_string(i + 1) + " of " +
             std::to_string(request.points.size()) + ": " + point.run_folder);
    if (signals.stop_within(0)) return static_cast<int>(ExitCode::kRequeue);
    const int code = run_as_parent(command_of(point, request), signals);
    if (code == static_cast<int>(ExitCode::kRequeue) || signals.asked_to_stop())
      return code;
    if (code != 0) {
      log_error("[submit] " + point.run_folder + " ended with exit code " +
                std::to_string(code));
      ++failed;
      worst = std::max(worst, code);
      continue;
    }
    runs.push_back(summarize_run(point.run_folder));
  }
  if (!runs.empty()) std::cout << comparison_text(runs) << std::flush;
  if (failed > 0)
    log_error("[submit] " + std::to_string(failed) + " of " +
              std::to_string(request.points.size()) +
              " runs failed. Hint: the same command goes on with those that "
              "are not complete");
  return worst;
}

// What run_here() would run, a line for each point.
int print(const JobRequest& request) {
  for (const auto& point : request.points)
    std::cout << command_text(command_of(point, request)) << "\n";
  std::cout.flush();
  return 0;
}

// A script that nobody else can read, for as long as the batch system needs it.
class PrivateScript {
 public:
  explicit PrivateScript(const std::string& text) {
    std::error_code error;
    const auto folder = std::filesystem::temp_directory_path(error);
    if (error)
      throw ConfigError(
          "[submit] " + error.message() +
          ": there is no folder for the script. Hint: TMPDIR names one");
    path_ = unforeseeable_name(folder / "chexnet-job");
    constexpr unsigned kOwnersAlone = 0600;
    write_atomically(path_, text, kOwnersAlone);
  }
  ~PrivateScript() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  PrivateScript(const PrivateScript&) = delete;
  PrivateScript& operator=(const PrivateScript&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

int hand_over(const JobRequest& request, const std::string& text) {
  const bool pbs = request.scheduler == Scheduler::kPbs;
  constexpr double kTimeout_s = 60;
  const PrivateScript script(text);
  std::vector<std::string> command = {"sbatch", "--parsable", script.path()};
  if (pbs) command = {"qsub", script.path()};
  const ChildOutput result = output_of(command, kTimeout_s);
  if (result.exit_code != 0)
    throw DeviceError("[submit] " + command.front() +
                      " refused the job, see above. Hint: --dry-run shows the "
                      "script; account, "
                      "partition and the like belong into $CHEXNET_SITE");
  std::cout << result.output << std::flush;
  return 0;
}

// What train would find only once the job has its hosts.
void check_job(const Config& config, JobRequest& request) {
  agree_on_ranks(config.launch, request);
  if (config.train.batch)  // else chosen by the ranks
    check_batch(config.train, *config.train.batch, total_ranks(request));
}

void say_cores(const JobRequest& request) {
  if (request.cpus_per_rank > 0) return;
  log_warning(
      "[submit] each rank gets one core, for compute and loader threads "
      "together. Hint: --cpus-per-rank N, or cpus_per_rank in the site file");
}

std::string site_file_of(const Options& options) {
  if (!options.site.empty()) return options.site;
  const char* site = std::getenv("CHEXNET_SITE");
  return site != nullptr ? site : "";
}

int run(const Options& options, Invocation& invocation) {
  const Config config =
      load_config({options.files.begin(), options.files.end()}, options.set);
  check_run(config);
  JobRequest request;
  request.program = invocation.command;
  const std::string site_file = site_file_of(options);
  if (!site_file.empty()) read_site_file(site_file, request);
  override_with(options, request);
  request.name = options.name.empty() ? config.run.name : options.name;
  const auto job_s = duration_s(request.time);
  if (!job_s)
    throw ConfigError("[submit] --time " + request.time +
                      " is no time. Hint: 24:00:00");
  request.signal_s = signal_lead_s(*job_s, config.launch.stop_margin_s);
  if (!options.local) check_job(config, request);
  request.arguments = options.files;
  for (const auto& assignment : options.set)
    request.arguments.insert(request.arguments.end(), {"--set", assignment});
  request.run_folder =
      options.out.empty() ? run_folder_of(config).string() : options.out;
  if (!options.sweep.empty() || options.seeds > 0) {
    request.points =
        sweep_points(options.sweep, options.seeds, request.run_folder);
    // A value that no run would take is found here and not by each job.
    for (const auto& point : request.points) {
      auto set = options.set;
      set.insert(set.end(), point.assignments.begin(), point.assignments.end());
      const Config of_point =
          load_config({options.files.begin(), options.files.end()}, set);
      check_run(of_point);
      if (!options.local) check_job(of_point, request);
    }
  } else if (options.local) {
    throw ConfigError(
        "[submit] --local is for sweeps. Hint: `chexnet-train train` runs one");
  }
  if (options.local)
    return options.dry_run ? print(request) : run_here(request);
  const std::string script = job_script(request);
  say_cores(request);
  if (options.dry_run) {
    std::cout << script << std::flush;
    return 0;
  }
  return hand_over(request, script);
}

}  // namespace

void add_submit(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "submit",
      "train as a batch job of Slurm or PBS, or a sweep of runs as an array");
  auto options = std::make_shared<Options>();
  command->add_option("config", options->files, "YAML files, as for train")
      ->required();
  add_set_option(*command, options->set, "the files");
  auto* slurm =
      command->add_flag("--slurm", options->slurm, "a Slurm job (the default)");
  auto* pbs =
      command->add_flag("--pbs", options->pbs, "a PBS job")->excludes(slurm);
  command
      ->add_flag("--local", options->local,
                 "the runs of a sweep one after another on this machine")
      ->excludes(slurm)
      ->excludes(pbs);
  command->add_flag("--dry-run", options->dry_run,
                    "print the script, or the commands of --local, and do "
                    "nothing");
  const auto count = [&](const char* name, int& into, const char* text) {
    command->add_option(name, into, text)->check(CLI::Range(1, 100000));
  };
  count("--nodes", options->nodes, "hosts");
  count("--ranks-per-node,--ppn", options->ranks_per_node,
        "ranks per host; default: one for each GPU, else as "
        "launch.ranks says");
  count("--gpus-per-node,--gpus", options->gpus_per_node, "GPUs per host");
  count("--cpus-per-rank", options->cpus_per_rank,
        "cores per rank, for compute and loader threads; default: one");
  count("--seeds", options->seeds, "runs per setting, with run.seed 1, 2, …");
  command
      ->add_option("--max-requeues", options->max_requeues,
                   "more starts after exit codes that may pass (see --help); "
                   "default 20")
      ->check(CLI::Range(0, 100000));
  add_repeated_option(*command, "--sweep", options->sweep,
                      "key=value,value,…: one run per value");
  command->add_option("--time", options->time,
                      "time limit of the job, e.g. 24:00:00");
  command->add_option("--account", options->account,
                      "account or project to charge");
  command->add_option("--partition,--queue", options->partition,
                      "partition or queue");
  command->add_option("--name", options->name,
                      "name of the job; default: run.name");
  command
      ->add_option("--out", options->out,
                   "run folder; of a sweep the folder of its runs")
      ->check(in_file_system());
  command
      ->add_option("--launcher", options->launcher,
                   "mpirun (the program starts it) or srun")
      ->check(CLI::IsMember(choice_names<JobLauncher>()));
  add_repeated_option(*command, "--line", options->lines,
                      "additional line for the head of the script");
  add_repeated_option(*command, "--setup", options->setup,
                      "shell line before the program");
  command->add_option("--site", options->site,
                      "site file; default: $CHEXNET_SITE");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return run(*options, invocation);
    };
  });
}

}  // namespace chexnet
