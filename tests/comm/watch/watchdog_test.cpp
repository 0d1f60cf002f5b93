#include "chexnet/comm/watch/watchdog.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "chexnet/comm/watch/hard_exit.hpp"
#include "chexnet/core/error.hpp"
#include "comm/watch/heartbeat_table.hpp"
#include "support/catch.hpp"
#include "support/container_communicator.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

// Sockets of this process that wait for connections from a network.
int listening_sockets() {
  std::set<std::string> listening;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::vector<std::string> column;
      for (std::string word; words >> word;) column.push_back(word);
      constexpr size_t kState = 3, kInode = 9;
      if (column.size() > kInode && column[kState] == "0A")
        listening.insert("socket:[" + column[kInode] + "]");
    }
  }
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    if (listening.contains(
            std::filesystem::read_symlink(entry, error).string()))
      ++count;
  return count;
}

// The exit code of `action` in a separate process; 137 when it hangs.
template <class Action>
int code_of_child(Action action) {
  const pid_t child = fork();
  if (child == 0) {
    action();
    _exit(99);
  }
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0U));
  pollfd ended{handle, POLLIN, 0};
  if (poll(&ended, 1, 20000) != 1) kill(child, SIGKILL);
  close(handle);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("on one host nobody listens on a network") {
  const ScratchFolder folder;
  const int before = listening_sockets();
  ThreadWorld world(2);
  world.run([&](Communicator& comm) {
    Profiler profiler;
    const Watchdog watchdog(comm, profiler, {600, folder.path(), "", "", {}});
    comm.barrier();
    if (comm.rank() == 0) CHECK(listening_sockets() == before);
    comm.barrier();
  });
}

#ifndef __SANITIZE_THREAD__  // which, where a process of threads forks, takes
                             // locks of its own and passes on no signals
TEST_CASE("a rank ends though the main thread holds the locks of its output") {
  CHECK(code_of_child([] {
          std::thread([] {
            flockfile(stdout);
            pause();
          }).detach();
          usleep(100000);
          exit_and_end_launcher(7);
        }) == 7);
  CHECK(code_of_child([] {
          exit_within(1, 5);
          for (;;) pause();
        }) == 5);
}
#endif

TEST_CASE("a full /dev/shm is an error that says so, where it is needed") {
  constexpr int kNotHere = 77;
  const int code = code_of_child([] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("", "/", "", MS_REC | MS_PRIVATE, "") != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4k") != 0)
      _exit(kNotHere);
    std::ofstream("/dev/shm/full") << std::string(4096, 'x');
    ThreadWorld world(2);
    std::atomic<int> refused = 0;
    world.run([&](Communicator& comm) {
      const HeartbeatTable table(comm);
      ContainerCommunicator apart(comm);
      const std::string text =
          error_of<DeviceError>([&] { const HeartbeatTable other(apart); });
      // One rank makes the memory and knows why it failed.
      const bool first = comm.rank() == 0;
      if (text.find(first ? "No space left on device" : "on another rank") !=
          std::string::npos)
        ++refused;
    });
    _exit(refused == 2 ? 0 : 1);
  });
  if (code == kNotHere)
    WARN("skipped: mount namespaces need root");
  else
    CHECK(code == 0);
}
