#include "chexnet/core/system_call_filter.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>

#include "chexnet/core/sanitized.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

namespace chexnet {
namespace {

constexpr int kNoFilter = 77;

// How a process that calls `act` under the filter ends: as waitpid says.
int end_of(const std::function<int(int out)>& act) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::_exit(allow_reading_only(ends[1]) ? act(ends[1]) : kNoFilter);
  }
  ::close(ends[1]);
  int status = 0;
  const pid_t ended = ::waitpid(child, &status, 0);
  ::close(ends[0]);  // without a reader the child's write would end it
  REQUIRE(ended == child);
  return status;
}

// A machine whose containers refuse filters has nothing to test, and the
// sanitizers make calls that are not on the list.
bool can_filter() {
  if (kSanitized) return false;
  const int status = end_of([](int) { return 0; });
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kNoFilter) {
    CHECK(status == 0);
    return true;
  }
  std::cerr << "skipped: no filter of system calls here\n";
  return false;
}

bool killed(const std::function<void()>& act) {
  const int status = end_of([&](int) {
    act();
    return 0;
  });
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

bool holds(const std::function<bool(int out)>& what) {
  const int status = end_of([&](int out) { return what(out) ? 0 : 1; });
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("a process that may only read ends where it asks for more") {
  if (!can_filter()) return;
  const ScratchFolder folder;
  const std::string file = (folder.path() / "file").string();
  CHECK(killed([] { ::socket(AF_INET, SOCK_STREAM, 0); }));
  CHECK(killed([] { ::socket(AF_UNIX, SOCK_STREAM, 0); }));
  CHECK(killed([] { ::execl("/bin/true", "true", nullptr); }));
  CHECK(killed([] { ::fork(); }));
  CHECK(killed([] { ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }));
  CHECK(killed([&] { ::open(file.c_str(), O_WRONLY | O_CREAT, 0600); }));
  CHECK(killed([] { ::open("/dev/null", O_RDWR); }));
  CHECK(
      killed([&] { ::syscall(SYS_openat, AT_FDCWD, file.c_str(), O_CREAT); }));
  CHECK(!std::filesystem::exists(file));
}

TEST_CASE("other calls fail in a process that may only read") {
  if (!can_filter()) return;
  CHECK(holds(
      [](int) { return ::kill(::getppid(), 0) != 0 && errno == ENOSYS; }));
  CHECK(
      holds([](int) { return ::unlink("/nowhere") != 0 && errno == ENOSYS; }));
  CHECK(holds([](int) { return ::prctl(PR_GET_DUMPABLE) < 0; }));
  CHECK(holds([](int) {
    return ::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0) != 0 &&
           errno == EPERM;
  }));
  CHECK(holds([](int) {
    rlimit limit{};
    return ::prlimit(::getppid(), RLIMIT_AS, nullptr, &limit) != 0 &&
           errno == EPERM;
  }));
}

TEST_CASE("a process that may only read has what reading needs") {
  if (!can_filter()) return;
  CHECK(holds([](int) {
    std::array<char, 8> bytes{};
    const int fd = ::open("/proc/self/stat", O_RDONLY);
    return fd >= 0 && ::read(fd, bytes.data(), bytes.size()) > 0 &&
           ::close(fd) == 0;
  }));
  CHECK(holds([](int out) { return ::write(out, "x", 1) == 1; }));
  CHECK(holds([](int) { return ::write(STDOUT_FILENO, "x", 1) == 1; }));
  CHECK(holds([](int) {
    void* memory = std::malloc(size_t{64} << 20);
    std::free(memory);
    return memory != nullptr;
  }));
  CHECK(holds([](int) {
    rlimit limit{};
    return ::getrlimit(RLIMIT_AS, &limit) == 0 &&
           ::setrlimit(RLIMIT_AS, &limit) == 0;
  }));
  CHECK(holds([](int) {
    bool ran = false;
    std::thread([&] { ran = true; }).join();
    return ran;
  }));
  const int status = end_of([](int) -> int { std::abort(); });
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
}

TEST_CASE("no file that was open before can be written to") {
  if (!can_filter()) return;
  const ScratchFolder folder;
  const int fd =
      ::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  CHECK(holds([&](int) { return ::write(fd, "x", 1) < 0 && errno == EBADF; }));
  CHECK(holds([&](int) {
    return ::mmap(nullptr, 1, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED;
  }));
  CHECK(std::filesystem::file_size(folder.path() / "file") == 0);
  ::close(fd);
}

}  // namespace chexnet
