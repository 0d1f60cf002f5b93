// The processes of a run that starts its own ranks:
//
//   batch system, terminal
//        | TERM, INT, USR1, USR2, HUP
//        v
//   chexnet-train (parent)      holds signals back and reads them one by one
//        |                      (ParentSignals)
//        | USR1 for the first TERM or INT; KILL to the group and the ranks for
//        v the second, and when overdue
//   mpirun, in another group    dies with the parent (PDEATHSIG); passes USR1
//        |                      on to the ranks
//        |
//        v
//   rank 0, rank 1, ...         write a checkpoint and exit with 75
//
// What mpirun prints comes through the parent (StreamRelay), which knows of a
// full disk and of a reader that is gone. A small process of no group waits for
// mpirun's end, and removes what it leaves when it is killed (launcher_files).
//
// TERM never goes to mpirun first: it would kill the ranks a second later, in
// the middle of a checkpoint. Ctrl-C reaches the parent alone, because mpirun
// is in another process group. With one rank and restarts, the rank itself
// stands for mpirun here.
#include "chexnet/launch/self_launch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/launched_ranks.hpp"
#include "chexnet/launch/launcher_files.hpp"
#include "chexnet/launch/launchers.hpp"
#include "chexnet/launch/open_ports.hpp"
#include "chexnet/launch/signals.hpp"
#include "stream_relay.hpp"

namespace chexnet {

bool started_by_parent(const Environment& env) {
  return started_as_rank(env) && env(kParentVariable) != nullptr;
}

namespace {

int slots_of(const std::vector<HostSlots>& hosts) {
  int slots = 0;
  for (const auto& host : hosts) slots += host.slots;
  return slots;
}

}  // namespace

RankLayout decide_layout(const RankRequest& request, const BatchJob& job,
                         const std::vector<HostSlots>& hosts) {
  RankLayout layout;
  int slots = job.tasks;
  layout.hosts = job.nodes;
  if (!hosts.empty()) {
    layout.hosts = static_cast<int>(hosts.size());
    slots = slots_of(hosts);
  }
  layout.ranks_per_host = request.ranks_per_host;
  if (layout.ranks_per_host == 0 && request.ranks == 0)
    layout.ranks_per_host = request.host_gpus;
  if (request.ranks > 0)
    layout.ranks = request.ranks;
  else if (layout.ranks_per_host > 0)
    layout.ranks = layout.ranks_per_host * layout.hosts;
  else
    layout.ranks = std::max({slots, layout.hosts, 1});
  // Ranks that do not fill each host alike go by slots.
  if (layout.ranks_per_host == 0 && slots == 0 &&
      layout.ranks % layout.hosts == 0)
    layout.ranks_per_host = layout.ranks / layout.hosts;
  // Fewer ranks than would fill the hosts stay on the first ones.
  if (layout.ranks_per_host > 0)
    layout.hosts =
        std::min(layout.hosts, (layout.ranks + layout.ranks_per_host - 1) /
                                   layout.ranks_per_host);
  return layout;
}

void put_on_hosts(SelfLaunch& launch, std::vector<HostSlots> hosts,
                  const std::string& hostfile, int slots, size_t cpus) {
  const bool first_is_here = hosts.empty() || is_this_host(hosts.front().name);
  // Where all ranks are ours mpirun needs no hosts, and may bind them.
  const bool here = launch.layout.hosts == 1 && first_is_here;
  if (!hosts.empty()) slots = slots_of(hosts);
  const auto ranks = static_cast<size_t>(launch.layout.ranks);
  launch.hostfile = here ? "" : hostfile;
  if (here) hosts.clear();
  launch.hosts = std::move(hosts);
  launch.first_here = first_is_here;
  launch.alone = ranks == 1 && launch.hosts.empty();
  // `--ntasks-per-node=1 --gpus-per-node=4` gives mpirun one slot a host,
  // however many cores.
  launch.oversubscribe =
      (slots > 0 && launch.layout.ranks > slots) || (here && ranks > cpus);
}

std::vector<std::string> forwarded_variables(
    const char* const* environment, const std::vector<std::string>& wanted) {
  // mpirun itself passes OMPI_MCA_… on.
  static constexpr std::array<std::string_view, 18> kOurs = {
      "ATEN_", "AWS_",   "CHEXNET_", "CUDA_",
      "FI_",   "HCOLL_", "HWLOC_",   "LD_LIBRARY_PATH",
      "MLX5_", "NCCL_",  "OMP_",     "PATH",
      "PSM2_", "PSM3_",  "PYTORCH_", "TORCH_",
      "UCC_",  "UCX_"};
  std::vector<std::string> names;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::any_of(
            kOurs, [&](std::string_view p) { return name.starts_with(p); }) ||
        std::ranges::find(wanted, name) != wanted.end())
      names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

ParentSignals::ParentSignals() {
  // A parent that ignores it (some daemons do) would make the kernel discard
  // how our children ended.
  signal(SIGCHLD, SIG_DFL);
  sigemptyset(&waited_for_);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD})
    sigaddset(&waited_for_, signal);
  if (terminal_may_end_us()) sigaddset(&waited_for_, SIGHUP);
  sigprocmask(SIG_BLOCK, &waited_for_, &before_);
}
ParentSignals::~ParentSignals() {
  if (kept_) return;
  // A signal that came when all had ended would replace this process's exit
  // code.
  constexpr timespec kNow{};
  while (sigtimedwait(&waited_for_, nullptr, &kNow) > 0) continue;
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int ParentSignals::next(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const timespec time{
      whole, static_cast<long>(1e9 * (seconds - static_cast<double>(whole)))};
  const int signal = sigtimedwait(&waited_for_, nullptr, &time);
  if (signal > 0 && signal != SIGCHLD) ++asked_;
  if (signal == SIGTERM || signal == SIGINT) ++ends_;
  return std::max(signal, 0);
}

bool ParentSignals::stop_within(double seconds) {
  const double end = now_s() + seconds;
  // Polls at least once: a signal may be waiting already.
  do {
    if (!asked_to_stop()) next(std::max(0.0, end - now_s()));
  } while (!asked_to_stop() && now_s() < end);
  return asked_to_stop();
}

namespace {

// The exit code of `child`, as a shell has it; nothing while it is alive.
std::optional<int> ended(pid_t child) {
  int status = 0;
  const pid_t found = waitpid(child, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return std::nullopt;
  if (found < 0)
    throw DeviceError(
        "[launch] it is not known how the command ended: {}. Hint: something "
        "else in this process waited for it",
        std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// In the child, between fork and exec.
[[noreturn]] void become(const std::vector<char*>& argv, pid_t parent,
                         const sigset_t& mask, const ChildStreams& streams) {
  // A new group: Ctrl-C reaches only the parent, which decides what mpirun
  // gets.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(static_cast<int>(ExitCode::kDevice));
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  // A background group that reads the terminal would be stopped; and mpirun
  // would take the input of a shell's loop.
  const int null = open("/dev/null", O_RDWR);
  if (null >= 0 && !streams.input) dup2(null, STDIN_FILENO);
  dup2(streams.out >= 0 ? streams.out : null, STDOUT_FILENO);
  dup2(streams.errors >= 0 ? streams.errors : null, STDERR_FILENO);
  execvp(argv[0], argv.data());
  static constexpr char kMessage[] =
      "error: [launch] mpirun cannot be started. Hint: install openmpi-bin, or "
      "use --ranks 1\n";
  [[maybe_unused]] const auto written =
      write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(static_cast<int>(ExitCode::kDevice));
}

// Also where the command is stopped or blocked. Launchers give their ranks new
// groups.
void end_at_once(pid_t child) {
  const auto ranks = ranks_below(child);
  kill(-child, SIGKILL);
  for (const pid_t rank : ranks) kill(rank, SIGKILL);
}

// The first TERM or INT lets the ranks write a checkpoint, the second ends
// them.
void answer(int signal, pid_t child, bool first) {
  if (signal != SIGTERM && signal != SIGINT) return;
  if (first)
    log_info(
        "stop requested: the ranks exit with 75, a training with a checkpoint "
        "(once more ends them "
        "at once)");
  else
    end_at_once(child);
}

// After the child's end. The reader may take its time; a signal gives it up.
void finish(StreamRelay& relay, ParentSignals& signals) {
  constexpr double kLook_s = 0.02;
  relay.child_is_gone();
  while (!relay.done())
    if (const int signal = signals.next(kLook_s);
        signal != 0 && signal != SIGCHLD)
      break;
}

}  // namespace

pid_t start_child(const std::vector<std::string>& command,
                  const ParentSignals& signals, const ChildStreams& streams) {
  std::vector<char*> argv;
  for (const auto& word : command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0)
    throw DeviceError("[launch] fork: {}. Hint: ulimit -u",
                      std::strerror(errno));
  if (child == 0) become(argv, parent, signals.before(), streams);
  setpgid(child, child);  // here too: it may be killed before its own call
  return child;
}

int run_as_parent(const std::vector<std::string>& command,
                  ParentSignals& signals, const ParentWork& work) {
  const RankLauncher* launcher = find_launcher(command[0]);
  const bool of_mpi = launcher != nullptr && launcher->of_mpi;
  // Other commands check their writes and the terminal themselves.
  std::optional<StreamRelay> out, errors;
  ChildStreams streams{work.gives_stdin, STDOUT_FILENO, STDERR_FILENO};
  if (of_mpi) {
    for (const char* name : kStepVariables) unsetenv(name);
    streams.out = out.emplace(STDOUT_FILENO).for_child();
    streams.errors =
        errors.emplace(STDERR_FILENO, StreamRelay::Lines::kErrorsOnce)
            .for_child();
  }
  const pid_t child = start_child(command, signals, streams);
  if (of_mpi) {
    remove_launcher_files_after(child);  // forks, so threads come after it
    out->start();
    errors->start();
  }

  // mpirun drops a signal while it has no ranks yet, so the request to stop is
  // sent again for a while.
  constexpr int kTellings = 30, kTellingsOfLauncher = 5;
  int told = 0;
  double looked_s = now_s();
  bool is_bound = false;
  for (;;) {
    const int signal = signals.next(1);
    // Each time: a SIGCHLD may be lost among others, or never come.
    if (const auto code = ended(child)) {
      if (!of_mpi) return *code;
      finish(*errors, signals);
      finish(*out, signals);
      if (out->is_closed() && work.is_filter) raise(SIGPIPE);
      if (out->failed()) std::cout.setstate(std::ios::badbit);
      return *code;
    }
    if (signal != 0 && signal != SIGCHLD) {
      answer(signal, child, !signals.ends_at_once());
      told = std::min(told, kTellingsOfLauncher);
    } else if (now_s() - looked_s < 1) {
      continue;
    }
    looked_s = now_s();
    if (of_mpi && !is_bound && (is_bound = has_all_ranks_below(child)))
      bind_ports_to_loopback(child);
    const bool to_stop = signals.asked_to_stop() ||
                         (work.is_filter && of_mpi && out->is_closed());
    if (to_stop && told++ < kTellings) {
      kill(child, SIGUSR1);
      // mpirun may be stopped or blocked.
      if (told > kTellingsOfLauncher)
        for (const pid_t rank : ranks_below(child)) kill(rank, SIGUSR1);
    }
    if (work.ends_it && work.ends_it(child)) end_at_once(child);
  }
}

}  // namespace chexnet
