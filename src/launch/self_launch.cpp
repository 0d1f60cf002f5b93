#include "chexnet/launch/self_launch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"

namespace chexnet {

std::vector<std::string> mpirun_command(int ranks, std::size_t cpus, bool as_root,
                                        const std::vector<std::string>& mpi_args,
                                        const std::string& program,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"mpirun", "--map-by", "socket", "-np", std::to_string(ranks)};
  if (static_cast<std::size_t>(ranks) > cpus) command.emplace_back("--oversubscribe");
  if (as_root) command.emplace_back("--allow-run-as-root");
  command.insert(command.end(), mpi_args.begin(), mpi_args.end());
  command.push_back(program);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

int run_as_parent(const std::vector<std::string>& command) {
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
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal == SIGCHLD) {
      int status = 0;
      const pid_t ended = waitpid(child, &status, WNOHANG);
      if (ended == 0 || (ended < 0 && errno == EINTR)) continue;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
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
