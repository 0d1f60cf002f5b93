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
#include <cstring>
#include <iostream>
#include <span>
#include <thread>
#include <utility>

#include "chexnet/app/run_options.hpp"
#include "chexnet/app/start_rows.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/comm/watch/hard_exit.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/shell_words.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launched_ranks.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/launch/mpi_family.hpp"
#include "chexnet/launch/network_settings.hpp"
#include "chexnet/launch/open_ports.hpp"
#include "chexnet/launch/rank_processes.hpp"
#include "chexnet/launch/restart_loop.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/launch/start_checks.hpp"
#include "chexnet/launch/timeouts.hpp"
#include "chexnet/train/run/folder_records.hpp"
#include "chexnet/train/run/run_decisions.hpp"
#include "chexnet/train/run/run_folder.hpp"

namespace chexnet {
namespace {

// Tells ranks how their parent would go on with the run.
constexpr const char* kResumeVariable = "CHEXNET_RESUME";

void refuse(const std::string& problem) {
  if (!problem.empty()) throw DeviceError(problem);
}
void refuse_singletons(int world_size) {
  refuse(singleton_problem(process_environment(), world_size));
}

// The ranks of this invocation, and the mpirun that starts them; none where
// there is one rank.
struct RanksToStart {
  SelfLaunch launch;
  Mpirun mpirun;
};

RankLayout layout_of(const LaunchConfig& config, const BatchJob& job) {
  RankRequest request;
  request.ranks = static_cast<int>(config.ranks);
  request.ranks_per_host = static_cast<int>(config.ranks_per_node);
  if (config.device != DeviceKind::kCpu) {
    // A login node may have no GPU where the job's hosts have some.
    request.host_gpus = CudaLibrary::visible_gpus();
    if (request.host_gpus == 0 && config.device == DeviceKind::kCuda)
      request.host_gpus = job.host_gpus;
  }
  return decide_layout(request, job, job.hosts);
}

void refuse_unreachable_input(const ParentTask& task) {
  constexpr const char* kNotByRanks =
      " cannot be read by ranks that this program starts. Hint: ";
  if (task.reads_stdin && isatty(STDIN_FILENO) == 1)
    throw ConfigError(
        "[launch] - (stdin) is a terminal, which{}a pipe, @FILE, or --ranks 1",
        kNotByRanks);
  if (!task.own_descriptor.empty())
    throw ConfigError("[launch] {}{}a file, a pipe into -, or --ranks 1",
                      task.own_descriptor, kNotByRanks);
}

// No restart could ever have as many hosts.
void refuse_few_hosts(const BatchJob& job, int min_hosts) {
  if (job.nodes >= min_hosts) return;
  throw ConfigError(
      "[launch] launch.min_hosts={}: the run has {}. Hint: at most as many, or "
      "more hosts by --hostfile or the batch job",
      min_hosts, counted(job.nodes, "host"));
}

RanksToStart ranks_to_start(const LaunchConfig& config, const BatchJob& job,
                            const Invocation& invocation) {
  RanksToStart ranks;
  SelfLaunch& launch = ranks.launch;
  const std::string hostfile =
      config.hostfile.empty() ? job.nodefile : config.hostfile;
  launch.layout = layout_of(config, job);
  put_on_hosts(launch, job.hosts, hostfile, job.tasks, allowed_cpus().size());
  if (!launch.alone) {
    ranks.mpirun = find_mpirun(config.mpi);
    launch.mpirun = rank_starter(ranks.mpirun, config.mpi);
  }
  launch.as_root = geteuid() == 0;
  launch.forwarded = forwarded_variables(environ, invocation.variables);
  launch.mpi_args =
      network_settings(config.network, launch.mpirun.family).mpirun;
  launch.mpi_args.insert(launch.mpi_args.end(), config.mpi_args.begin(),
                         config.mpi_args.end());
  launch.program = invocation.program;
  for (const auto& word : invocation.arguments)
    if (word != kDryRunOption) launch.arguments.push_back(word);
  return ranks;
}

// Problems that mpirun would report badly.
std::vector<CheckResult> start_checks(const LaunchConfig& config,
                                      const RanksToStart& ranks) {
  const NetworkChoice& network = config.network;
  const SelfLaunch& launch = ranks.launch;
  using Kind = NetworkChoice::Kind;
  const bool asks_ucx =
      network.kind == Kind::kInfiniBand || network.kind == Kind::kUcx;
  NetworkFacts facts = read_network_facts(asks_ucx ? &ranks.mpirun : nullptr);
  const bool here = launch.layout.hosts == 1 && launch.hosts.empty();
  if (!here) facts.adapters.reset();
  constexpr bool kNeeded = true;
  std::vector<CheckResult> checks = {
      temporary_folder_check(process_environment()),
      mpirun_check(ranks.mpirun, kNeeded, config.mpi)};
  // Where ranks run on other hosts alone, theirs counts.
  if (launch.first_here && checks.back().level == Level::kPass)
    checks.push_back(of_mpi_library(config, ranks.mpirun, kNeeded));
  checks.push_back(network_check(network, facts));
  return checks;
}

FolderRecords records_of(const ParentTask& task) {
  return {task.training, task.resume != Resume::kNo, task.resume_command};
}

// Every rank that waits too long says so, as none can know which rank does not
// come. The parent reads the post-mortem, and prints it last.
void end_late_start(const ParentTask& task, bool on_one_host, double waited_s) {
  constexpr int kFileTimeout_s = 5;  // as for the watchdog
  constexpr auto kCode = static_cast<int>(ExitCode::kHang);
  exit_within(kFileTimeout_s, kCode);
  const std::string what = "MPI's start did not end within " +
                           fixed(waited_s, 0) + " s on " + host_name();
  if (on_one_host)
    records_of(task).explain_late_start(
        what + ", where all ranks are",
        "was a rank stopped, or does it wait for a driver?");
  else
    records_of(task).explain_late_start(
        what +
            ": a host did not start its ranks, or the network between them "
            "does not pass data",
        kUnreachedHint);
  exit_and_end_launcher(kCode);
}

// MPI's ports, its launcher's too, are for the hosts of the run.
void admit_own_hosts(Communicator& comm, const Environment& env) {
  const auto own = own_host_addresses();
  std::vector<HostAddress> all;
  for (const auto& bytes : comm.all_gather(std::as_bytes(std::span(own)))) {
    const size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(HostAddress));
    std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  std::vector<pid_t> launchers;
  if (comm.world().local_rank == 0) launchers = own_launchers();
  if (ranks_share_host(env))
    for (const pid_t launcher : launchers) bind_ports_to_loopback(launcher);
  admit_only(std::move(all), launchers);
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
  const ChosenMpi mpi = choose_mpi(config.mpi, env);
  refuse(launcher_problem(env, mpi.family));
  refuse_failed({network_check(config.network, read_network_facts(nullptr))});
  apply(network_settings(config.network, mpi.family));
  if (ranks_share_host(env))
    apply(one_host_settings(config.network, mpi.family, env));
  auto comm = [&] {
    const double limit_s = std::max(config.timeout_s, kLeastStart_s);
    WaitDeadline deadline(
        limit_s, [&] { end_late_start(task, ranks_share_host(env), limit_s); });
    const auto wait = deadline.wait();
    auto opened = open_mpi({config.timeout_s, mpi.family, mpi.by});
    if (opened->size() > 1) admit_own_hosts(*opened, env);
    return opened;
  }();
  refuse_singletons(comm->size());
  return comm;
}

int restarts_of(const ParentTask& task) {
  return task.training ? static_cast<int>(task.training->launch.restarts) : 0;
}

// Before any rank exists, if the batch is known by then.
void check_batch_of(const ParentTask& task, int ranks) {
  if (task.training == nullptr) return;
  const int64_t batch = batch_of_run(*task.training);
  if (batch > 0) check_batch(task.training->train, batch, ranks);
}

void check_folder_of(const ParentTask& task) {
  if (task.training == nullptr) return;
  const StorageWait wait(
      task.training->launch.timeout_s,
      "looking into the run folder " + run_folder_of(*task.training).string());
  check_takes_run(*task.training, task.resume);
}

// As their parent, through all their starts. Returns the code for the user.
int run_ranks(const SelfLaunch& launch, const LaunchConfig& config,
              const ParentTask& task) {
  FolderRecords records = records_of(task);
  RankProcesses::Options options{.reads_stdin = task.reads_stdin};
  if (task.training != nullptr) {
    options.run_folder = run_folder_of(*task.training);
    options.accumulate = task.training->train.accumulate;
  }
  RankProcesses ranks(launch, config, options, records);
  return RestartLoop(restarts_of(task), ranks, records).run();
}

// A rank of a world that now exists.
RankWorld as_rank(std::unique_ptr<Communicator> comm, Invocation& invocation) {
  set_log_rank(comm->rank(), comm->size());
  std::function<void(int)> abort;
  if (comm->size() > 1)
    abort = [first = comm->rank() == 0](int code) {
      // Errors that all ranks find rank 0 still writes into the run's metrics.
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
  if (!task.resume_command.empty())
    setenv(kResumeVariable, task.resume_command.c_str(), 1);
  const BatchJob job = job_for_mpirun(config.hostfile, env, ask_command);
  if (task.training != nullptr)
    refuse_few_hosts(job, static_cast<int>(config.min_hosts));
  const RanksToStart ranks = ranks_to_start(config, job, invocation);
  const SelfLaunch& launch = ranks.launch;
  check_batch_of(task, launch.layout.ranks);
  check_folder_of(task);
  if (task.dry_run) {
    std::cout
        << (launch.alone
                ? "one rank: this process trains by itself, without mpirun"
                : command_text(start_command(launch)))
        << "\n";
    return RankWorld(0);
  }

  // The parent of one rank is there for its restarts; the rank itself knows
  // that it has one.
  const bool watched =
      restarts_of(task) > 0 && env(kRestartsVariable) == nullptr;
  if (launch.alone && watched) {
    setenv(kRestartsVariable, "0", 1);
    return RankWorld(run_ranks(launch, config, task));
  }
  if (!launch.alone) {
    refuse_unreachable_input(task);
    refuse_failed(start_checks(config, ranks));
    log_info("starting " + counted(launch.layout.ranks, "rank") + " by " +
             ranks.mpirun.name().text() + ": " +
             command_text(start_command(launch)));
    return RankWorld(run_ranks(launch, config, task));
  }

  if (task.stops) install_stop_signals();
  return as_rank(solo_communicator(), invocation);
}

std::string resume_command(const Invocation& invocation, int ranks) {
  std::vector<std::string> words;
  const Environment env = process_environment();
  if (started_by_parent(env) && env(kResumeVariable) != nullptr)
    return env(kResumeVariable);
  // Started by hand through mpirun or srun, it goes on so.
  if (started_as_rank(env) && !started_by_parent(env)) {
    words = {"mpirun", "-np", std::to_string(ranks)};
    if (launcher_mpi(env) == MpiFamily::kOpenMpi)
      words.insert(words.begin() + 1, {"--map-by", "socket"});
  }
  words.insert(words.end(), invocation.command.begin(),
               invocation.command.end());
  words.insert(words.end(), invocation.arguments.begin(),
               invocation.arguments.end());
  add_resume(words);
  return command_text(words);
}

}  // namespace chexnet
