#include "chexnet/launch/self_launch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"

namespace chexnet {

RankLayout decide_layout(const RankWish& wish, const BatchJob& job,
                         const std::vector<HostSlots>& hosts) {
  RankLayout layout;
  int slots = job.tasks;
  layout.hosts = job.nodes;
  if (!hosts.empty()) {
    layout.hosts = static_cast<int>(hosts.size());
    slots = 0;
    for (const auto& host : hosts) slots += host.slots;
  }
  layout.ranks_per_host = wish.ranks_per_host;
  if (layout.ranks_per_host == 0 && wish.ranks == 0) layout.ranks_per_host = wish.host_gpus;
  if (wish.ranks > 0)
    layout.ranks = wish.ranks;
  else if (layout.ranks_per_host > 0)
    layout.ranks = layout.ranks_per_host * layout.hosts;
  else
    layout.ranks = std::max({slots, layout.hosts, 1});
  // Ranks that do not fill each host alike go by slots.
  if (layout.ranks_per_host == 0 && slots == 0 && layout.ranks % layout.hosts == 0)
    layout.ranks_per_host = layout.ranks / layout.hosts;
  // Fewer ranks than would fill the hosts stay on the first ones.
  if (layout.ranks_per_host > 0)
    layout.hosts =
        std::min(layout.hosts, (layout.ranks + layout.ranks_per_host - 1) / layout.ranks_per_host);
  return layout;
}

std::vector<std::string> mpirun_command(const SelfLaunch& launch) {
  const RankLayout& layout = launch.layout;
  std::vector<std::string> command = {"mpirun"};
  if (layout.hosts == 1) {
    command.insert(command.end(), {"--map-by", "socket"});
  } else {
    if (!launch.hostfile.empty()) command.insert(command.end(), {"--hostfile", launch.hostfile});
    // Two ranks would be bound to a core each; each rank finds its own seat (launch.bind).
    command.insert(command.end(), {"--bind-to", "none"});
    if (layout.ranks_per_host > 0)
      command.insert(command.end(),
                     {"--map-by", "ppr:" + std::to_string(layout.ranks_per_host) + ":node"});
    for (const auto& name : launch.forwarded) command.insert(command.end(), {"-x", name});
  }
  if (launch.oversubscribe) command.emplace_back("--oversubscribe");
  command.insert(command.end(), {"-np", std::to_string(layout.ranks)});
  if (launch.as_root) command.emplace_back("--allow-run-as-root");
  command.insert(command.end(), launch.mpi_args.begin(), launch.mpi_args.end());
  command.push_back(launch.program);
  command.insert(command.end(), launch.arguments.begin(), launch.arguments.end());
  return command;
}

std::vector<std::string> forwarded_variables(const char* const* environment,
                                             const std::vector<std::string>& wanted) {
  // mpirun itself passes OMPI_MCA_… on.
  static constexpr std::array<std::string_view, 12> kOurs = {
      "AWS_", "CHEXNET_", "CUDA_", "HWLOC_",   "LD_LIBRARY_PATH", "NCCL_",
      "OMP_", "PATH",     "PSM2_", "PYTORCH_", "TORCH_",          "UCX_"};
  std::vector<std::string> names;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::any_of(kOurs, [&](std::string_view p) { return name.starts_with(p); }) ||
        std::ranges::find(wanted, name) != wanted.end())
      names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::string command_text(const std::vector<std::string>& command) {
  std::string text;
  for (const auto& word : command) {
    const bool plain =
        !word.empty() && word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "-_./=:,@%+^") == std::string::npos;
    text += text.empty() ? "" : " ";
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

namespace {
bool asked_to_stop = false;  // by a signal; one run a process
}

bool parent_was_asked_to_stop() { return asked_to_stop; }

int run_as_parent(const std::vector<std::string>& command,
                  const std::function<bool()>& once_a_second) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) sigaddset(&signals, signal);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);

  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0)
    throw DeviceError("[launch] fork: " + std::string(std::strerror(errno)) + ". Hint: ulimit -u");
  if (child == 0) {
    // A group of its own: Ctrl-C reaches only the parent, which decides what mpirun gets.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(static_cast<int>(ExitCode::kDevice));
    sigprocmask(SIG_SETMASK, &before, nullptr);
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
      dup2(null, STDIN_FILENO);  // a background group that reads the terminal would be stopped
    execvp(argv[0], argv.data());
    static constexpr char kMessage[] =
        "error: [launch] mpirun cannot be started. Hint: install openmpi-bin, or use --ranks 1\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
    _exit(static_cast<int>(ExitCode::kDevice));
  }

  int asked = 0;
  for (;;) {
    const timespec second{1, 0};
    const int signal = sigtimedwait(&signals, nullptr, &second);
    if (signal < 0) {
      if (once_a_second && once_a_second()) kill(-child, SIGKILL);
      continue;
    }
    if (signal == SIGCHLD) {
      int status = 0;
      const pid_t ended = waitpid(child, &status, WNOHANG);
      if (ended == 0 || (ended < 0 && errno == EINTR)) continue;
      sigprocmask(SIG_SETMASK, &before, nullptr);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    asked_to_stop = true;
    if (signal == SIGUSR1) {
      kill(child, SIGUSR1);
    } else if (++asked == 1) {
      log_info(
          "stop requested: the ranks write a checkpoint and exit with 75 (once more ends them at "
          "once)");
      kill(child, SIGUSR1);
    } else {
      kill(child, SIGTERM);
    }
  }
}

}  // namespace chexnet
