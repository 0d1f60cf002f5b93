#include "chexnet/launch/signals.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>

namespace chexnet {
namespace {
std::atomic<bool> stop_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");
}  // namespace

bool die_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() != 1;
}

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_flag.store(true); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

bool stop_requested() { return stop_flag.load(); }

}  // namespace chexnet
