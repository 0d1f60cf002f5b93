#include "chexnet/watch/hard_exit.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "chexnet/launch/launchers.hpp"

namespace chexnet {
namespace {

// Only system calls from here on: the main thread may hold the locks of the
// heap, of stdio or of the log, and never let them go.

// The name of a process, of at most 15 characters, as the kernel knows it.
struct ProcessName {
  std::array<char, 32> text{};
  explicit ProcessName(pid_t process) {
    std::array<char, 32> path{};
    put_path(process, path);
    const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const auto count = read(file, text.data(), text.size() - 1);
    close(file);
    if (count > 0) text[static_cast<size_t>(count) - 1] = 0;  // its newline
  }

  // "/proc/PROCESS/comm"
  static void put_path(pid_t process, std::array<char, 32>& path) {
    std::array<char, 16> digits{};
    size_t count = 0;
    for (auto rest = static_cast<unsigned>(process); count == 0 || rest > 0;
         rest /= 10)
      digits[count++] = static_cast<char>('0' + rest % 10);
    size_t at = 0;
    for (const char c : std::string_view("/proc/")) path[at++] = c;
    while (count > 0) path[at++] = digits[--count];
    for (const char c : std::string_view("/comm")) path[at++] = c;
  }
};

bool is_mpi_launcher(pid_t process) {
  const ProcessName name(process);
  const RankLauncher* launcher = find_launcher(name.text.data());
  return launcher != nullptr && launcher->of_mpi;
}

volatile sig_atomic_t code_when_late = 0;

}  // namespace

void exit_and_end_launcher(int exit_code, int timeout_s) {
  const pid_t launcher = getppid();
  // A handle of the process, not its number, which may be another's by then.
  const int handle =
      is_mpi_launcher(launcher)
          ? static_cast<int>(syscall(SYS_pidfd_open, launcher, 0U))
          : -1;
  // Not fork(), which runs what libraries have asked for at a fork.
  if (handle >= 0 && _Fork() == 0) {
    setsid();
    // mpirun reads our output until the last holder closes it.
    syscall(SYS_close_range, 0U, static_cast<unsigned>(handle) - 1, 0U);
    syscall(SYS_close_range, static_cast<unsigned>(handle) + 1, ~0U, 0U);
    pollfd ended{handle, POLLIN, 0};
    if (poll(&ended, 1, 1000 * timeout_s) == 0)
      syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0U);
    _exit(0);
  }
  _exit(exit_code);
}

void exit_within(int seconds, int exit_code) {
  code_when_late = exit_code;
  struct sigaction action {};
  action.sa_handler = [](int) { exit_and_end_launcher(code_when_late); };
  sigaction(SIGALRM, &action, nullptr);
  alarm(static_cast<unsigned>(seconds));
}

}  // namespace chexnet
