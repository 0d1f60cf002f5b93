// The lock is the kernel's (flock), so it goes with the process, however that
// ends. The file stays, and says who had it last.
#include "chexnet/launch/run_lock.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/safe_open.hpp"
#include "chexnet/core/write_hint.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launched_ranks.hpp"

namespace chexnet {

namespace {

// 0, or the errno of the last try. `status` looks at a lock by taking it for a
// moment, so one refusal is none.
int lock(int fd, double timeout_s) {
  constexpr double kTryEvery_s = 0.02, kGlance_s = 0.1;
  const double end = now_s() + std::max(timeout_s, kGlance_s);
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || now_s() >= end) return errno;
    std::this_thread::sleep_for(std::chrono::duration<double>(kTryEvery_s));
  }
  return 0;
}

bool has_name(int fd, const std::filesystem::path& path) {
  struct stat open {
  }, named{};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

// Does not block on a pipe of that name.
int open_to_look(const std::filesystem::path& folder) {
  return ::open((folder / ".lock").c_str(),
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

std::string text_of(int fd) {
  std::array<char, 256> text{};
  [[maybe_unused]] const auto count =
      ::pread(fd, text.data(), text.size() - 1, 0);
  return text.data();
}

std::string own_text() {
  return "process " + std::to_string(getpid()) + " on " + host_name();
}

// Whoever may read the file can hold its lock, so only users who may write it
// can read it.
void hide_from_readers(int fd) {
  constexpr mode_t kOwn = S_IRUSR | S_IWUSR, kGroup = S_IRGRP | S_IWGRP;
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  const mode_t mode = (info.st_mode & S_IWGRP) != 0 ? kOwn | kGroup : kOwn;
  [[maybe_unused]] const int ignored = ::fchmod(fd, mode);  // another's file
}

struct Owner {
  bool is_known = false, is_here = false;  // the text names one; on this host
  int process = 0;
};

Owner owner_in(const std::string& text) {
  Owner owner;
  std::array<char, 128> host{};
  owner.is_known = std::sscanf(text.c_str(), "process %d on %127s",
                               &owner.process, host.data()) == 2;
  owner.is_here =
      owner.is_known && owner.process > 0 && host.data() == host_name();
  return owner;
}

// The lock's holder, as the file says it: a process that only read the file
// wrote no name there, so one that has ended may still be named.
std::string holder_of(const std::string& text) {
  const auto [is_known, is_here, process] = owner_in(text);
  if (is_known && (!is_here || ::kill(process, 0) == 0 || errno != ESRCH))
    return text;
  return "a process that left no name" +
         (is_known ? " (the last that did, " + text + ", does not run here)"
                   : std::string());
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& folder, double timeout_s)
    : folder_(folder),
      folder_fd_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  try {
    take(timeout_s);
  } catch (...) {
    close_all();
    throw;
  }
}

void RunLock::require() {
  const auto path = folder_ / ".lock";
  std::error_code error;
  if (!std::filesystem::exists(folder_, error)) return;
  const bool is_other_folder =
      folder_fd_ >= 0 && !has_name(folder_fd_, folder_);
  const std::string other = other_owner(folder_);
  if (is_other_folder || !other.empty())
    throw CheckpointError(
        "[launch] {}: {}; nothing of this run is written into it. Hint: where "
        "its own folder was moved to, --out and --resume auto go on with this "
        "run",
        folder_.string(),
        other.empty() ? "is another folder than the one that this run began in"
                      : "another run was begun here by " + other);
  if (has_name(fd_, path)) return;
  log_warning("[launch] " + path.string() +
              ": was removed while this run holds it; it is taken again. Hint: "
              "leave it there: it is free as soon as no process uses it");
  take(0);
}

void RunLock::take(double timeout_s) {
  const auto path = folder_ / ".lock";
  int error = 0;
  // A start that failed removes its lock file: a process that waited for it
  // holds a file that nobody else will find.
  do {
    if (fd_ >= 0) ::close(fd_);
    fd_ = open_lock_file(path);
    if (fd_ < 0) {
      const int problem = errno;
      throw CheckpointError("[launch] {}: {}. Hint: {}", path.string(),
                            std::strerror(problem),
                            write_hint(problem, "--out"));
    }
    error = lock(fd_, timeout_s);
  } while (error == 0 && !has_name(fd_, path));
  if (error != 0) {
    if (error == EWOULDBLOCK) {
      const std::string holder = holder_of(text_of(fd_));
      ::close(std::exchange(fd_, -1));
      throw CheckpointError(
          "[launch] {}: in use by {}. Hint: wait for that run, stop it, or "
          "choose another folder with --out",
          folder_.string(), holder);
    }
    log_warning("[launch] " + path.string() +
                ": this file system has no locks (" + std::strerror(error) +
                "); take care that no other run uses the folder");
  }
  hide_from_readers(fd_);
  const std::string text = own_text();
  if (::ftruncate(fd_, 0) != 0 ||
      ::pwrite(fd_, text.data(), text.size(), 0) < 0)
    log_warning("[launch] " + path.string() +
                ": cannot be written: " + std::strerror(errno));
}

RunLock::~RunLock() { close_all(); }

void RunLock::close_all() {
  for (int* fd : {&fd_, &folder_fd_})
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
}

std::string other_owner(const std::filesystem::path& folder) {
  const int fd = open_to_look(folder);
  if (fd < 0) return "";
  struct stat info {};
  const bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const std::string text = is_file ? text_of(fd) : "";
  ::close(fd);
  return text == own_text() ? "" : text;
}

int stopped_owner(const std::filesystem::path& folder) {
  const Owner owner = owner_in(other_owner(folder));
  return owner.is_here && is_stopped(owner.process) ? owner.process : 0;
}

std::optional<bool> run_is_locked(const std::filesystem::path& folder) {
  const int fd = open_to_look(folder);
  if (fd < 0) return std::nullopt;
  // A shared lock, held for a moment: RunLock tries more than once.
  const int error = ::flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
  ::close(fd);
  if (error == 0) return false;
  if (error == EWOULDBLOCK) return true;
  return std::nullopt;
}

}  // namespace chexnet
