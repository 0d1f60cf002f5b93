// Five ways in, tried in this order:
//
//   a launcher started us (mpirun, srun)   -> rank of its world, over MPI
//   --dry-run                              -> print the command and stop
//   one rank whose failures are restarted  -> parent of the same command,
//                                             without mpirun
//   several ranks                          -> parent of mpirun
//   one rank                               -> the rank itself, a world of one
#include "chexnet/app/enter_world.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <utility>

#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/network.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/launch/start_checks.hpp"
#include "chexnet/machine/affinity.hpp"
#include "chexnet/watch/hard_exit.hpp"
#include "chexnet/watch/start_deadline.hpp"
#include "parent.hpp"

namespace chexnet {
namespace {

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
  if (launch.hostfile.empty()) launch.job_hosts = job.hosts;
  const auto hosts =
      launch.hostfile.empty() ? job.hosts : read_hostfile(launch.hostfile);
  RankRequest request;
  request.ranks = static_cast<int>(config.ranks);
  request.ranks_per_host = static_cast<int>(config.ranks_per_node);
  if (config.device != DeviceKind::kCpu) {
    // A login node may have no GPU where the job's hosts have some.
    request.host_gpus = CudaLibrary::visible_gpus();
    if (request.host_gpus == 0 && config.device == DeviceKind::kCuda)
      request.host_gpus = job.host_gpus;
  }
  launch.layout = decide_layout(request, job, hosts);
  // `--ntasks-per-node=1 --gpus-per-node=4` gives mpirun one slot a host,
  // however many cores.
  int slots = hosts.empty() ? job.tasks : 0;
  for (const auto& host : hosts) slots += host.slots;
  const auto ranks = static_cast<size_t>(launch.layout.ranks);
  // Where all ranks are ours mpirun needs no host file, and may bind them.
  const bool here = launch.layout.hosts == 1 &&
                    (hosts.empty() || is_this_host(hosts.front().name));
  if (here) {
    launch.hostfile.clear();
    launch.job_hosts.clear();
  }
  launch.first_here = launch.layout.hosts > 1 &&
                      (hosts.empty() || is_this_host(hosts.front().name));
  launch.alone = launch.layout.ranks == 1 && launch.hostfile.empty() &&
                 launch.job_hosts.empty();
  launch.oversubscribe = (slots > 0 && launch.layout.ranks > slots) ||
                         (here && ranks > allowed_cpus().size());
  launch.as_root = geteuid() == 0;
  launch.forwarded = forwarded_variables(environ, invocation.variables);
  launch.mpi_args = network_settings(config.network).mpirun;
  launch.mpi_args.insert(launch.mpi_args.end(), config.mpi_args.begin(),
                         config.mpi_args.end());
  launch.program = invocation.program;
  for (const auto& word : invocation.arguments)
    if (word != kDryRunOption) launch.arguments.push_back(word);
  return launch;
}

// What mpirun would only stumble over.
std::vector<CheckResult> start_checks(const NetworkChoice& network,
                                      const SelfLaunch& launch) {
  const Mpirun mpirun = find_mpirun();
  using Kind = NetworkChoice::Kind;
  const bool asks_ucx =
      network.kind == Kind::kInfiniBand || network.kind == Kind::kUcx;
  NetworkFacts facts = read_network_facts(asks_ucx ? &mpirun : nullptr);
  const bool here = launch.layout.hosts == 1 && launch.hostfile.empty() &&
                    launch.job_hosts.empty();
  if (!here) facts.adapters.reset();
  constexpr bool kNeeded = true;
  return {temporary_folder_check(process_environment()),
          mpirun_check(mpirun, kNeeded), network_check(network, facts)};
}

// Every rank that is kept waiting says so, for who waits in vain cannot know
// who does not come. The parent reads the post-mortem, and says it last.
void end_late_start(const ParentTask& task, double waited_s) {
  constexpr int kFileTimeout_s = 5;  // as for the watchdog
  constexpr auto kCode = static_cast<int>(ExitCode::kHang);
  exit_within(kFileTimeout_s, kCode);
  explain_late_start(
      task, "MPI's start did not end within " + fixed(waited_s, 0) + " s on " +
                host_name() +
                ": a host did not start its ranks, or the network between "
                "them does not pass data");
  exit_and_end_launcher(kCode);
}

std::unique_ptr<Communicator> open_world(const LaunchConfig& config,
                                         const ParentTask& task,
                                         const Environment& env) {
  if (task.dry_run)
    throw ConfigError(
        "[launch] --dry-run prints the command that would start the ranks, and "
        "this process is a "
        "rank already. Hint: leave mpirun or srun away");
  if (task.stops) install_stop_signals();  // MPI's start takes a while
  refuse(launcher_problem(env));
  refuse_failed({network_check(config.network, read_network_facts(nullptr))});
  apply(network_settings(config.network));
  auto comm = [&] {
    const double limit_s = std::max(config.timeout_s, StartDeadline::kLeast_s);
    const StartDeadline deadline(limit_s,
                                 [&] { end_late_start(task, limit_s); });
    return open_mpi({config.timeout_s});
  }();
  refuse_singletons(comm->size());
  return comm;
}

// A rank of a world that now exists.
RankWorld as_rank(std::unique_ptr<Communicator> comm, Invocation& invocation) {
  set_log_rank(comm->rank(), comm->size());
  std::function<void(int)> abort;
  if (comm->size() > 1)
    abort = [first = comm->rank() == 0](int code) {
      // What all ranks find wrong, rank 0 still writes into the run's metrics.
      if (!first) std::this_thread::sleep_for(std::chrono::seconds(1));
      abort_mpi(code);
    };
  return {std::move(comm), invocation.on_failure, std::move(abort)};
}

}  // namespace

RankWorld enter_world(const LaunchConfig& config, Invocation& invocation,
                      const ParentTask& task) {
  const Environment env = process_environment();
  if (started_as_rank(env))
    return as_rank(open_world(config, task, env), invocation);

  refuse_singletons(1);
  // Tells ranks who started them, and when first.
  setenv(kParentVariable, fixed(system_time_s() - process_age_s(), 3).c_str(),
         0);
  const SelfLaunch ranks =
      self_launch(config, asked_batch_job(env, ask_command), invocation);
  if (task.dry_run) {
    std::cout
        << (ranks.alone
                ? "one rank: this process trains by itself, without mpirun"
                : command_text(start_command(ranks)))
        << "\n";
    return RankWorld(0);
  }

  // The parent of one rank is there for its restarts; the rank itself knows
  // that it has one.
  const bool watched = task.restarts > 0 && env(kRestartsVariable) == nullptr;
  if (ranks.alone && watched) {
    setenv(kRestartsVariable, "0", 1);
    return RankWorld(run_ranks(ranks, task, config.timeout_s));
  }
  if (!ranks.alone) {
    refuse_failed(start_checks(config.network, ranks));
    log_info("starting " + std::to_string(ranks.layout.ranks) +
             " ranks: " + command_text(start_command(ranks)));
    return RankWorld(run_ranks(ranks, task, config.timeout_s));
  }

  if (task.stops) install_stop_signals();
  return as_rank(solo_communicator(), invocation);
}

std::string resume_command(const Invocation& invocation, int ranks) {
  std::vector<std::string> words;
  // Started by hand through mpirun or srun, it goes on so.
  const Environment env = process_environment();
  if (started_as_rank(env) && !started_by_parent(env))
    words = {"mpirun", "--map-by", "socket", "-np", std::to_string(ranks)};
  words.insert(words.end(), invocation.command.begin(),
               invocation.command.end());
  words.insert(words.end(), invocation.arguments.begin(),
               invocation.arguments.end());
  add_resume(words);
  return command_text(words);
}

}  // namespace chexnet
