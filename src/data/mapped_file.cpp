// A mapped file that is cut off, or whose disk fails, ends the process by
// SIGBUS at the next access. The handler can name the file, as mapped ranges
// are kept in an array of atomics: a signal handler may take neither locks nor
// memory.
#include "chexnet/data/mapped_file.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "chexnet/core/error.hpp"
#include "chexnet/launch/launcher_codes.hpp"

namespace chexnet {
namespace {

// What the signal handler knows: it may touch nothing but atomics. `begin` is
// set last.
struct Range {
  std::atomic<uintptr_t> begin = 0;  // 0: free
  std::atomic<uint64_t> size = 0;
  std::atomic<const char*> path = nullptr;
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

// More files than that are mapped, but not named.
std::array<Range, 256> ranges;
struct sigaction before {};

void say(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0)
    return;  // nobody listens
}

void on_bus_error(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Range& range : ranges) {
    const uintptr_t begin = range.begin.load();
    if (begin == 0 || at < begin || at - begin >= range.size.load()) continue;
    say("error: [pack] ");
    say(range.path.load());
    say(": was cut off while it was in use, or its storage failed. Hint: look "
        "at the file, at "
        "dmesg "
        "and the file server; start again when it is whole\n");
    ::_exit(code_for_launcher(static_cast<int>(ExitCode::kOutage)));
  }
  ::sigaction(SIGBUS, &before,
              nullptr);  // of somebody else: the access is made again
}

// After MPI's handler, which would only print a stack.
void watch_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, &before);
  });
}

std::mutex ranges_mutex;  // between those who enter and remove ranges

void enter(std::span<const std::byte> bytes, const char* path) {
  const std::lock_guard lock(ranges_mutex);
  for (Range& range : ranges) {
    if (range.begin.load() != 0) continue;
    range.size = bytes.size();
    range.path = path;
    range.begin = reinterpret_cast<uintptr_t>(bytes.data());
    return;
  }
}

void remove(std::span<const std::byte> bytes) {
  const std::lock_guard lock(ranges_mutex);
  for (Range& range : ranges)
    if (range.begin.load() == reinterpret_cast<uintptr_t>(bytes.data()))
      range.begin = 0;
}

}  // namespace

MappedFile::MappedFile(std::string path, int fd, uint64_t size)
    : path_(std::move(path)) {
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return;
  bytes_ = {static_cast<const std::byte*>(map), size};
  watch_bus_errors();
  enter(bytes_, path_.c_str());
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  remove(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace chexnet
