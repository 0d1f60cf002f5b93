// posix_spawn, not fork and exec: between those two a program with threads may
// call next to nothing. The limit is on the child's output: when it ends, so
// that poll() sees the pipe closed, or when the time is over, the child is
// waited for. Exit codes are a shell's, 128 + signal where one ended the child.
//
// run_in_shell() also needs somebody to end the command when this process is
// gone. Only the shell around it can: it reads a pipe that nobody writes, whose
// other end is ours alone and closes with us.
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
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/launch/environment.hpp"

extern char** environ;

namespace chexnet {

namespace {

// The read end and the write end; closed with it.
struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw DeviceError("[launch] pipe: {}. Hint: ulimit -n",
                        std::strerror(errno));
  }
  ~Pipe() {
    for (int i = 0; i < 2; ++i) close_end(i);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
  int ends[2];
};

// Libraries open files and sockets that every child would get.
void keep_files_from_children() {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string name = entry.path().filename().string();
    int fd = 0;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (fd > STDERR_FILENO) fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

// What mpirun sets for ranks; a user's choices are OMPI_MCA_… and PMIX_MCA_….
bool is_of_rank(std::string_view variable) {
  const auto begins = [&](std::string_view with) {
    return variable.starts_with(with);
  };
  if (begins("OMPI_MCA_"))
    return begins("OMPI_MCA_ess") || begins("OMPI_MCA_orte_");
  return begins("OMPI_") || begins("PMI_") || begins("PALS_") ||
         (begins("PMIX_") && !begins("PMIX_MCA_"));
}

// A rank's command is no rank: it must not get the ranks' variables, or an MPI
// program in it would take itself for one. `mark` is of it: a command's ranks
// are not ours (ranks_below()).
std::vector<char*> environment_of_command(std::string& mark) {
  std::vector<char*> kept;
  const std::string name = std::string(kCommandOfVariable) + "=";
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!is_of_rank(*variable) &&
        !std::string_view(*variable).starts_with(name))
      kept.push_back(*variable);
  mark = name + std::to_string(getpid());
  kept.push_back(mark.data());
  kept.push_back(nullptr);
  return kept;
}

pid_t spawned(const std::vector<std::string>& command,
              const posix_spawn_file_actions_t& actions,
              const posix_spawnattr_t* attributes) {
  std::vector<char*> argv;
  for (const auto& word : command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  keep_files_from_children();
  pid_t child = 0;
  std::string mark;
  const int rc = posix_spawnp(&child, argv[0], &actions, attributes,
                              argv.data(), environment_of_command(mark).data());
  if (rc != 0)
    throw DeviceError(
        "[launch] {} cannot be started: {}. Hint: is it installed?", command[0],
        std::strerror(rc));
  return child;
}

int exit_code_of(pid_t child, const std::string& name) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      throw DeviceError(
          "[launch] it is not known how {} ended: {}. Hint: does its caller "
          "ignore SIGCHLD?",
          name, std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class FileActions {
 public:
  FileActions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  void dup(int from, int to) {
    posix_spawn_file_actions_adddup2(&actions_, from, to);
  }
  void discard(int fd) {
    posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_WRONLY, 0);
  }
  const posix_spawn_file_actions_t& get() const { return actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

ChildOutput output_of(const std::vector<std::string>& command, double limit_s) {
  Pipe pipe;
  FileActions actions;
  actions.dup(pipe.ends[1], STDOUT_FILENO);
  const pid_t child = spawned(command, actions.get(), nullptr);
  pipe.close_end(1);
  ChildOutput result;
  std::array<char, 4096> buffer{};
  const double end = now_s() + limit_s;
  for (;;) {
    pollfd readable{pipe.ends[0], POLLIN, 0};
    const double left_ms = std::clamp(1e3 * (end - now_s()), 0.0, 1e6);
    const int ready = poll(&readable, 1, static_cast<int>(left_ms));
    if (ready == 0 && now_s() < end) continue;
    if (ready == 0) {
      kill(child, SIGKILL);
      break;
    }
    const auto count = read(pipe.ends[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    result.output.append(buffer.data(), static_cast<size_t>(count));
  }
  result.exit_code = exit_code_of(child, command[0]);
  return result;
}

namespace {

// Descriptor 3 is the pipe that closes with us, 4 the command's stderr: this
// shell's messages about killed jobs are for nobody.
constexpr const char* kGuard = R"(exec 4>&2 2>/dev/null
/bin/sh -c "$1" sh "$2" 2>&4 3<&- 4>&- & command=$!
{ read -r line <&3; kill -KILL 0; } 4>&- & guard=$!
exec 3<&- 4>&-
wait $command; code=$?
kill -KILL $guard
exit $code)";

// A new group; no signal is blocked or ignored, whatever this process does.
class OwnGroup {
 public:
  OwnGroup() {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                           POSIX_SPAWN_SETSIGDEF));
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~OwnGroup() { posix_spawnattr_destroy(&attributes_); }
  OwnGroup(const OwnGroup&) = delete;
  OwnGroup& operator=(const OwnGroup&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// Appends what is there to read within `wait_ms`, and keeps the end of it.
// Returns the bytes read, 0 where there were none, and -1 at the pipe's end.
ssize_t read_tail(int fd, int wait_ms, std::string& tail) {
  constexpr size_t kKept = 4096;
  pollfd readable{fd, POLLIN, 0};
  if (poll(&readable, 1, wait_ms) <= 0) return 0;
  std::array<char, kKept> buffer{};
  const auto count = read(fd, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return 0;
  if (count <= 0) return -1;
  tail.append(buffer.data(), static_cast<size_t>(count));
  if (tail.size() > kKept) tail.erase(0, tail.size() - kKept);
  return count;
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info,
                WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

}  // namespace

ChildOutput run_in_shell(const std::string& command,
                         const std::string& argument,
                         const std::stop_token& stop) {
  constexpr int kLook_ms = 100;
  Pipe says, life;
  FileActions actions;
  actions.discard(STDOUT_FILENO);
  actions.dup(says.ends[1], STDERR_FILENO);
  actions.dup(life.ends[0], 3);
  const OwnGroup group;
  const pid_t child =
      spawned({"/bin/sh", "-c", kGuard, "sh", command, argument}, actions.get(),
              group.get());
  says.close_end(1);
  ChildOutput result;
  ssize_t got = 0;
  while (!has_ended(child) && !stop.stop_requested()) {
    if (got < 0)
      poll(nullptr, 0, kLook_ms);
    else
      got = read_tail(says.ends[0], kLook_ms, result.output);
  }
  kill(-child, SIGKILL);  // before it is waited for: until then the id is ours
  while (got >= 0 && read_tail(says.ends[0], 0, result.output) > 0) {
  }
  result.exit_code = exit_code_of(child, command);
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
