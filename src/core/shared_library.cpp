#include "chexnet/core/shared_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

// Everything below is for a signal handler: no memory is taken, no lock.

void say(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0)
    return;  // nobody listens
}

// Reads a file line by line into one buffer.
class Lines {
 public:
  explicit Lines(const char* path)
      : file_(::open(path, O_RDONLY | O_CLOEXEC)) {}
  // Without its end; cut where it is longer than the buffer. False: no more.
  bool next(std::string_view& line) {
    size_t length = 0;
    for (char c = 0; ::read(file_, &c, 1) == 1;) {
      if (c == '\n') {
        line = {buffer_.data(), length};
        return true;
      }
      if (length < buffer_.size()) buffer_[length++] = c;
    }
    return false;
  }

 private:
  int file_;
  std::array<char, 4096 + 128> buffer_{};
};

// The file that is mapped at an address, by a line of proc_pid_maps(5):
// begin-end rights offset device inode path.
void say_file_at(uintptr_t address) {
  Lines lines("/proc/self/maps");
  for (std::string_view line; lines.next(line);) {
    uintptr_t begin = 0, end = 0;
    const char* const last = line.data() + line.size();
    const auto first = std::from_chars(line.data(), last, begin, 16);
    if (first.ptr == last) continue;
    std::from_chars(first.ptr + 1, last, end, 16);
    if (address < begin || address >= end) continue;
    const auto path = line.find('/');
    return say(path == std::string_view::npos ? "a library"
                                              : line.substr(path));
  }
  say("a library");
}

void on_bus_error(int, siginfo_t* info, void*) {
  say("error: [libraries] ");
  say_file_at(reinterpret_cast<uintptr_t>(info->si_addr));
  say(": is cut off, or its storage failed. Hint: it was not copied whole, or "
      "the disk was full: install or unpack it again\n");
  ::_exit(static_cast<int>(ExitCode::kDevice));
}

}  // namespace

void* open_shared_library(const char* name, int flags) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  // Blocked (SignalsBlocked), it would end the process without a word.
  sigset_t bus_error, blocked;
  sigemptyset(&bus_error);
  sigaddset(&bus_error, SIGBUS);
  ::sigaction(SIGBUS, &action, &before);
  ::pthread_sigmask(SIG_UNBLOCK, &bus_error, &blocked);
  void* const library = ::dlopen(name, RTLD_NOW | flags);
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  ::sigaction(SIGBUS, &before, nullptr);
  return library;
}

}  // namespace chexnet
