// posix_spawn, not fork and exec: between those two a program with threads may
// call next to nothing. The limit is on the child's output: when it ends, so
// that poll() sees the pipe closed, or when the time is over, the child is
// waited for. Exit codes are a shell's, 128 + signal where one ended the child.
#include "chexnet/launch/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"

extern char** environ;

namespace chexnet {

ChildOutput output_of(const std::vector<std::string>& command, double limit_s) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw DeviceError(std::string("[launch] pipe: ") + std::strerror(errno) +
                      ". Hint: ulimit -n");
  std::vector<char*> argv;
  for (const auto& word : command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  pid_t child = 0;
  const int rc =
      posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (rc != 0) {
    close(ends[0]);
    throw DeviceError("[launch] " + command[0] + " cannot be started: " +
                      std::strerror(rc) + ". Hint: is it installed?");
  }
  ChildOutput result;
  std::array<char, 4096> buffer{};
  const double end = now_s() + limit_s;
  for (;;) {
    pollfd readable{ends[0], POLLIN, 0};
    const double left_ms = std::clamp(1e3 * (end - now_s()), 0.0, 1e6);
    const int ready = poll(&readable, 1, static_cast<int>(left_ms));
    if (ready == 0 && now_s() < end) continue;
    if (ready == 0) {
      kill(child, SIGKILL);
      break;
    }
    const auto count = read(ends[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    result.output.append(buffer.data(), static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      throw DeviceError("[launch] it is not known how " + command[0] +
                        " ended: " + std::strerror(errno) +
                        ". Hint: does its caller ignore SIGCHLD?");
  result.exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + program;
    if (access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file))
      return file;
  }
  return "";
}

}  // namespace chexnet
