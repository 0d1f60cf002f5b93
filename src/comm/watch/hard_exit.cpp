#include "chexnet/comm/watch/hard_exit.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chexnet/launch/launcher_codes.hpp"
#include "chexnet/launch/launchers.hpp"

namespace chexnet {
namespace {

// Only system calls from here on: the main thread may hold the locks of the
// heap, of stdio or of the log, and never let them go.

volatile sig_atomic_t code_when_late = 0;

}  // namespace

void exit_and_end_launcher(int exit_code, int timeout_s) {
  const pid_t launcher = getppid();
  // A handle of the process, not its number, which may be another's by then.
  const int handle =
      is_mpi_launcher(launcher)
          ? static_cast<int>(syscall(SYS_pidfd_open, launcher, 0U))
          : -1;
  // Not fork(), which calls the handlers of libraries (pthread_atfork).
  if (handle >= 0 && _Fork() == 0) {
    setsid();
    close_files_but(handle);
    pollfd ended{handle, POLLIN, 0};
    if (poll(&ended, 1, 1000 * timeout_s) == 0)
      syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0U);
    _exit(0);
  }
  _exit(code_for_launcher(exit_code));
}

void exit_within(int seconds, int exit_code) {
  code_when_late = exit_code;
  struct sigaction action {};
  action.sa_handler = [](int) { exit_and_end_launcher(code_when_late); };
  sigaction(SIGALRM, &action, nullptr);
  alarm(static_cast<unsigned>(seconds));
}

}  // namespace chexnet
