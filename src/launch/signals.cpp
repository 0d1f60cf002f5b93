#include "chexnet/launch/signals.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>

#include "chexnet/core/error.hpp"
#include "chexnet/launch/launchers.hpp"

namespace chexnet {
namespace {
std::atomic<bool> stop_flag{false}, launcher_flag{false}, at_once{false};
std::atomic<bool> is_looked_at{false};  // stop_flag
static_assert(std::atomic<bool>::is_always_lock_free,
              "set in a signal handler");

// Also by a signal handler.
[[noreturn]] void end_stopped() {
  constexpr char kMessage[] = "stopped on request: nothing was written\n";
  [[maybe_unused]] const auto written =
      write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(static_cast<int>(ExitCode::kRequeue));
}

}  // namespace

bool die_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != 1) return true;
  // The parent is process 1: either it died and init took over, or the launcher
  // itself is process 1 of a container.
  std::ifstream comm("/proc/1/comm");
  std::string name;
  std::getline(comm, name);
  return find_launcher(name) != nullptr;
}

bool terminal_may_end_us() {
  struct sigaction now {};
  return sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN;
}

// A first signal only sets flags: what a stop needs (agreeing, a checkpoint) is
// done by the training loop. SA_RESTART, so that reads and writes under way are
// not cut short.
void install_stop_signals() {
  is_looked_at = false;
  struct sigaction action {};
  action.sa_sigaction = [](int signal, siginfo_t* info, void*) {
    if (at_once) end_stopped();
    const bool again = stop_flag.exchange(true);
    if (signal == SIGINT && again) {  // Ctrl-C once more: at once
      ::signal(SIGINT, SIG_DFL);
      raise(SIGINT);
    }
    if (signal != SIGTERM || info->si_pid != getppid()) return;
    launcher_flag.store(true);
    // mpirun sends it a second after another rank failed, and KILL one more
    // later. Half of that is enough to say why this one fails, too.
    constexpr itimerval kToSayWhy{{}, {0, 500'000}};
    if (!is_looked_at && is_mpi_launcher(info->si_pid))
      setitimer(ITIMER_REAL, &kToSayWhy, nullptr);
  };
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigaction(SIGUSR1, &action, nullptr);
  // LSF at the run limit, Grid Engine (-notify) before it kills: to every
  // process of the job.
  sigaction(SIGUSR2, &action, nullptr);
  // At the soft limit of `ulimit -t`, each second up to the hard one.
  sigaction(SIGXCPU, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  if (terminal_may_end_us()) sigaction(SIGHUP, &action, nullptr);
}

StopAtOnce::StopAtOnce() {
  at_once = true;
  if (stop_flag) end_stopped();
}

StopAtOnce::~StopAtOnce() { at_once = false; }

bool stop_requested() {
  is_looked_at = true;
  return stop_flag.load();
}
bool launcher_ends_job() { return launcher_flag.load(); }

}  // namespace chexnet
