#include "chexnet/launch/last_exit.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace chexnet {
namespace {

bool is_mpi_launcher(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  constexpr std::array<std::string_view, 6> kLaunchers = {"mpirun", "mpiexec", "orterun",
                                                          "orted",  "prterun", "prted"};
  for (const auto launcher : kLaunchers)
    if (name == launcher) return true;
  return false;
}

}  // namespace

void exit_and_end_launcher(int exit_code, int patience_s) {
  std::fflush(nullptr);
  const pid_t launcher = getppid();
  // A handle of the process, not its number, which may be another's by then.
  const int handle =
      is_mpi_launcher(launcher) ? static_cast<int>(syscall(SYS_pidfd_open, launcher, 0U)) : -1;
  if (handle >= 0 && fork() == 0) {
    // Only system calls here: the parent had other threads.
    setsid();
    // mpirun reads our output until the last holder closes it.
    syscall(SYS_close_range, 0U, static_cast<unsigned>(handle) - 1, 0U);
    syscall(SYS_close_range, static_cast<unsigned>(handle) + 1, ~0U, 0U);
    pollfd ended{handle, POLLIN, 0};
    if (poll(&ended, 1, 1000 * patience_s) == 0)
      syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0U);
    _exit(0);
  }
  _exit(exit_code);
}

}  // namespace chexnet
