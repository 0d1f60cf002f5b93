#include "chexnet/launch/launchers.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace chexnet {
namespace {

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

}  // namespace

bool is_mpi_launcher(pid_t process) {
  const ProcessName name(process);
  const RankLauncher* launcher = find_launcher(name.text.data());
  return launcher != nullptr && launcher->of_mpi;
}

bool is_mpi_daemon(pid_t process) {
  const ProcessName name(process);
  const RankLauncher* launcher = find_launcher(name.text.data());
  return launcher != nullptr && launcher->is_daemon;
}

void close_files_but(int kept) {
  const auto number = static_cast<unsigned>(kept);
  if (syscall(SYS_close_range, number + 1, ~0U, 0U) == 0) {
    if (kept > 0) syscall(SYS_close_range, 0U, number - 1, 0U);
    return;
  }
  // Kernels before 5.9, which may have pidfd_open (5.3).
  constexpr rlim_t kMost = 1 << 20;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<int>(std::min(limit.rlim_cur, kMost));
  for (int file = 0; file < end; ++file)
    if (file != kept) close(file);
}

}  // namespace chexnet
