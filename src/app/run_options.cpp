#include "chexnet/app/run_options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <thread>

#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/engine/network_spec.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/network.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/launch/start_checks.hpp"
#include "chexnet/machine/affinity.hpp"
#include "parent.hpp"

namespace chexnet {
namespace {

constexpr const char* kDryRun = "--dry-run";

void refuse(const std::string& problem) {
  if (!problem.empty()) throw DeviceError(problem);
}
void refuse_singletons(int world_size) {
  refuse(singleton_problem(process_environment(), world_size));
}

SelfLaunch self_launch(const LaunchConfig& config, const BatchJob& job,
                       const Invocation& invocation) {
  SelfLaunch launch;
  launch.hostfile = config.hostfile.empty() ? job.nodefile : config.hostfile;
  const auto hosts =
      launch.hostfile.empty() ? std::vector<HostSlots>{} : read_hostfile(launch.hostfile);
  RankRequest request;
  request.ranks = static_cast<int>(config.ranks);
  request.ranks_per_host = static_cast<int>(config.ranks_per_node);
  if (config.device != "cpu") {
    // A login node may have no GPU where the job's hosts have some.
    request.host_gpus = CudaLibrary::visible_gpus();
    if (request.host_gpus == 0 && config.device == "cuda") request.host_gpus = job.host_gpus;
  }
  launch.layout = decide_layout(request, job, hosts);
  // `--ntasks-per-node=1 --gpus-per-node=4` gives mpirun one slot a host, however many cores.
  int slots = hosts.empty() ? job.tasks : 0;
  for (const auto& host : hosts) slots += host.slots;
  const auto ranks = static_cast<std::size_t>(launch.layout.ranks);
  // Where all ranks are ours mpirun needs no host file, and may bind them.
  const bool here = launch.layout.hosts == 1 && (hosts.empty() || is_this_host(hosts.front().name));
  if (here) launch.hostfile.clear();
  launch.alone = launch.layout.ranks == 1 && launch.hostfile.empty();
  launch.oversubscribe =
      (slots > 0 && launch.layout.ranks > slots) || (here && ranks > allowed_cpus().size());
  launch.as_root = geteuid() == 0;
  launch.forwarded = forwarded_variables(environ, config.variables);
  launch.mpi_args = network_settings(config.network).mpirun;
  launch.mpi_args.insert(launch.mpi_args.end(), config.mpi_args.begin(), config.mpi_args.end());
  launch.program = invocation.program;
  for (const auto& word : invocation.arguments)
    if (word != kDryRun) launch.arguments.push_back(word);
  return launch;
}

// What mpirun would only stumble over.
std::vector<CheckResult> start_checks(const std::string& network, const SelfLaunch& launch) {
  const Mpirun mpirun = find_mpirun();
  const bool asks_ucx = network.starts_with("ib") || network == "ucx";
  NetworkFacts facts = read_network_facts(asks_ucx ? &mpirun : nullptr);
  const bool here = launch.layout.hosts == 1 && launch.hostfile.empty();
  if (!here) facts.adapters.reset();
  constexpr bool kNeeded = true;
  return {temporary_folder_check(process_environment()), mpirun_check(mpirun, kNeeded),
          network_check(network, facts)};
}

}  // namespace

void check_run(const Config& config) {
  check_for_training(config);
  const int smallest = smallest_input(network_spec(config.model.arch));
  if (config.data.crop < smallest)
    throw ConfigError("[config] data.crop: " + std::to_string(config.data.crop) +
                      " pixels are too few for " + config.model.arch +
                      ", whose pools leave nothing of them. Hint: at least " +
                      std::to_string(smallest));
}

void check_output(const std::string& path) {
  if (path.empty()) return;
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const auto fail = [&](const std::string& place, int error) {
    throw CheckpointError("[files] " + place + ": " + std::strerror(error) +
                          ". Hint: name a file in a folder that is there and writable");
  };
  if (std::filesystem::is_directory(path)) fail(path, EISDIR);
  if (access(folder.c_str(), F_OK) != 0) fail(path + ": " + folder, errno);
  if (!std::filesystem::is_directory(folder)) fail(path + ": " + folder, ENOTDIR);
  if (access(folder.c_str(), W_OK | X_OK) != 0) fail(path + ": " + folder, errno);
}

void add_set_option(CLI::App& command, std::vector<std::string>& set, const std::string& what) {
  command.add_option("--set", set, "key=value, overrides " + what + "; may be repeated")
      ->expected(1)
      ->take_all();
}

CLI::Validator in_file_system() { return {object_store_problem, "", "in a file system"}; }

void LaunchOptions::add_to(CLI::App& command) {
  command.add_option("--ranks", ranks, "ranks to start, all hosts together (launch.ranks)")
      ->check(CLI::Range(1, 1000000));
  command
      .add_option("--ranks-per-node,--ppn", ranks_per_node,
                  "ranks to start on each host (launch.ranks_per_node)")
      ->check(CLI::Range(1, 10000));
  command.add_option("--gpus", gpus, "GPUs to use on each host, one rank for each")
      ->check(CLI::Range(1, 10000));
  command.add_option("--hostfile", hostfile, "hosts to start ranks on (launch.hostfile)");
  command.add_option("--mpi-args", mpi_args, "further words for mpirun, as one text");
  command.add_flag(kDryRun, dry_run, "print the command that would start the ranks and stop");
}

void LaunchOptions::apply_to(LaunchConfig& config) const {
  if (ranks > 0) config.ranks = ranks;
  if (ranks_per_node > 0) config.ranks_per_node = ranks_per_node;
  if (gpus > 0) {
    config.ranks_per_node = gpus;
    config.device = "cuda";
  }
  if (!hostfile.empty()) config.hostfile = hostfile;
  std::istringstream words(mpi_args);
  for (std::string word; words >> word;) config.mpi_args.push_back(word);
}

void add_device_option(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
}

void LinkOptions::add_to(CLI::App& command) {
  launch.add_to(command);
  add_device_option(command, device);
  command.add_option("--network", network, "as launch.network")->capture_default_str();
}

LaunchConfig LinkOptions::config() const {
  LaunchConfig config;
  config.device = device;
  config.network = network;
  launch.apply_to(config);
  return config;
}

Launch enter_world(const LaunchConfig& config, Invocation& invocation, const ParentTask& task) {
  Launch launch;
  const Environment env = process_environment();
  if (started_as_rank(env)) {
    if (task.dry_run)
      throw ConfigError(
          "[launch] --dry-run prints the command that would start the ranks, and this process is a "
          "rank already. Hint: leave mpirun or srun away");
    if (task.stops) install_stop_signals();  // MPI's start takes a while
    refuse(launcher_problem(env));
    refuse_failed({network_check(config.network, read_network_facts(nullptr))});
    apply(network_settings(config.network));
    launch.comm = open_mpi({config.timeout_s});
    refuse_singletons(launch.comm->size());
  } else {
    refuse_singletons(1);
    // Tells ranks who started them, and when first.
    setenv("CHEXNET_PARENT", fixed(system_time_s() - process_age_s(), 3).c_str(), 0);
    const SelfLaunch ranks = self_launch(config, batch_job(env), invocation);
    if (task.dry_run) {
      std::cout << (ranks.alone ? "one rank: this process trains by itself, without mpirun"
                                : command_text(start_command(ranks)))
                << "\n";
      return launch;
    }
    // The parent of one rank is there for its restarts; the rank itself knows that it has one.
    const bool watched = task.restarts > 0 && env(kRestartsVariable) == nullptr;
    if (ranks.alone && watched) {
      setenv(kRestartsVariable, "0", 1);
      launch.parent_exit_code = run_ranks(ranks, task);
      return launch;
    }
    if (!ranks.alone) {
      refuse_failed(start_checks(config.network, ranks));
      log_info("starting " + std::to_string(ranks.layout.ranks) +
               " ranks: " + command_text(start_command(ranks)));
      launch.parent_exit_code = run_ranks(ranks, task);
      return launch;
    }
    if (task.stops) install_stop_signals();
    launch.comm = solo_communicator();
  }
  set_log_rank(launch.comm->rank(), launch.comm->size());
  if (launch.comm->size() > 1) {
    const bool first = launch.comm->rank() == 0;
    invocation.abort = [first](int code) {
      // What all ranks find wrong, rank 0 still writes into the run's metrics.
      if (!first) std::this_thread::sleep_for(std::chrono::seconds(1));
      abort_mpi(code);
    };
  }
  return launch;
}

std::string resume_command(const Invocation& invocation, int ranks) {
  std::vector<std::string> words;
  // Started by hand through mpirun or srun, it goes on so.
  const Environment env = process_environment();
  if (started_as_rank(env) && env("CHEXNET_PARENT") == nullptr)
    words = {"mpirun", "--map-by", "socket", "-np", std::to_string(ranks)};
  words.insert(words.end(), invocation.command.begin(), invocation.command.end());
  words.insert(words.end(), invocation.arguments.begin(), invocation.arguments.end());
  if (!has_option(words, "--resume")) words.insert(words.end(), {"--resume", "auto"});
  return command_text(words);
}

}  // namespace chexnet
