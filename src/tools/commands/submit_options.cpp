#include "submit_options.hpp"

#include <cstdlib>

#include "chexnet/app/run_options.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

// Hosts and queue of the job.
void add_places(CLI::App& command, SubmitOptions& options) {
  command
      .add_option("--scheduler", options.scheduler,
                  "slurm or pbs (default: the site file's, else the one that "
                  "is here); local: the runs of a sweep one after another on "
                  "this machine")
      ->check(CLI::IsMember({"slurm", "pbs", kLocal}));
  command.add_option("--container", options.container,
                     "image: a .sif file (Apptainer); of a registry for Pyxis "
                     "(srun)");
  add_repeated_option(command, "--mount", options.mounts,
                      "FOLDER[:INSIDE[:ro]] that the container sees besides "
                      "what the config names");
}

}  // namespace

void SubmitOptions::add_to(CLI::App& command) {
  command.add_option("config", files, "YAML files, as for train")->required();
  add_set_option(command, set, "the files");
  add_places(command, *this);
  command.add_flag("--dry-run", dry_run,
                   "print the script, or the commands of a local sweep, and "
                   "do nothing");
  const auto count = [&](const char* name, int& into, const char* text) {
    command.add_option(name, into, text)->check(CLI::Range(1, kMostOfAJob));
  };
  count("--nodes", nodes, "hosts");
  count("--ranks-per-node", ranks_per_node,
        "ranks per host; default: one for each GPU, else as "
        "launch.ranks says");
  count("--gpus-per-node", gpus_per_node, "GPUs per host");
  count("--cpus-per-rank", cpus_per_rank,
        "cores per rank, for compute and loader threads; default: one");
  count("--seeds", seeds, "runs per setting, with run.seed 1, 2, …");
  command
      .add_option(
          "--max-requeues", max_requeues,
          "more starts after exit codes that may pass (docs/errors.md); "
          "default 20")
      ->check(CLI::Range(0, kMostOfAJob));
  add_repeated_option(command, "--sweep", sweep,
                      "key=value,value,…: one run per value");
  command.add_flag("--stop-losers", stop_losers,
                   "end runs of a sweep early that are not among its best "
                   "third on validation (train.rungs)");
  const auto text = [&](const char* name, std::string& into, const char* what) {
    return command.add_option(name, into, what);
  };
  text("--time", time,
       "time limit of the job: 24:00:00 (default), "
       "1-12:00:00 (days), 90:00 or 90 (minutes)");
  text("--account", account, "account or project to charge");
  text("--partition,--queue", partition, "partition or queue");
  text("--qos", qos, "Slurm: quality of service");
  text("--constraint", constraint, "Slurm: features that hosts have");
  text("--mem", memory, "memory per host: 64G");
  command.add_flag("--exclusive", exclusive, "hosts without other jobs");
  text("--name", name, "name of the job; default: run.name");
  text("--out", out, "run folder; of a sweep the folder of its runs")
      ->check(of_a_run());
  command
      .add_option("--launcher", launcher,
                  "mpirun (the program starts it) or srun (Slurm)")
      ->check(CLI::IsMember(choice_names<JobLauncher>()));
  add_repeated_option(command, "--line", lines,
                      "additional line for the head of the script");
  add_repeated_option(command, "--setup", setup,
                      "shell line before the program");
  text("--site", site, "site file; default: $CHEXNET_SITE");
}

std::string SubmitOptions::site_file() const {
  if (!site.empty()) return site;
  const char* named = std::getenv("CHEXNET_SITE");
  return named != nullptr ? named : "";
}

void SubmitOptions::apply_to(JobRequest& request) const {
  const auto put = [](const std::string& given, std::string& into) {
    if (!given.empty()) into = given;
  };
  const auto put_count = [](int given, int& into) {
    if (given > 0) into = given;
  };
  put(account, request.account);
  put(partition, request.partition);
  put(qos, request.qos);
  put(constraint, request.constraint);
  put(memory, request.memory);
  request.exclusive = request.exclusive || exclusive;
  put(time, request.time);
  if (const auto named = find_choice<JobLauncher>(launcher))
    request.launcher = *named;
  put_count(nodes, request.nodes);
  put_count(ranks_per_node, request.ranks_per_node);
  put_count(gpus_per_node, request.gpus_per_node);
  put_count(cpus_per_rank, request.cpus_per_rank);
  if (max_requeues >= 0) request.max_requeues = max_requeues;
  request.lines.insert(request.lines.end(), lines.begin(), lines.end());
  request.setup.insert(request.setup.end(), setup.begin(), setup.end());
  if (const auto named = find_choice<Scheduler>(scheduler))
    request.scheduler = *named;
  put(container, request.container);
  for (const auto& mount : mounts)
    request.mounts.push_back(parsed_mount(mount));
  if (!mounts.empty() && request.container.empty())
    throw ConfigError(
        "[submit] --mount {}: there is no container to show it. Hint: "
        "--container IMAGE, here or in the site file",
        mounts.front());
}

void refuse_options_of_jobs(const CLI::App& command) {
  for (const char* option :
       {"--account", "--partition", "--qos", "--constraint", "--mem",
        "--exclusive", "--time", "--nodes", "--ranks-per-node",
        "--gpus-per-node", "--cpus-per-rank", "--max-requeues", "--name",
        "--launcher", "--line", "--setup", "--container", "--mount"})
    if (command.get_option(option)->count() > 0)
      throw CLI::ExcludesError("--scheduler local", option);
}

}  // namespace chexnet
