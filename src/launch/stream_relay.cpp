#include "stream_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

constexpr int kLook_ms = 50;
// A pipe with room takes so much at once.
constexpr size_t kPiece = 4096;

bool is_ready(int fd, short event) {
  pollfd looked{fd, event, 0};
  return poll(&looked, 1, kLook_ms) > 0;
}

// Whether all of the first `bytes` were passed on; polls `given_up` while
// nobody takes them. errno is 0 where it was given up.
bool write_some(int to, std::span<const char>& bytes,
                const std::atomic<bool>& given_up) {
  while (!is_ready(to, POLLOUT))
    if (given_up) {
      errno = 0;
      return false;
    }
  const ssize_t written =
      write(to, bytes.data(), std::min(bytes.size(), kPiece));
  if (written < 0) return errno == EINTR || errno == EAGAIN;
  bytes = bytes.subspan(static_cast<size_t>(written));
  return true;
}

}  // namespace

StreamRelay::StreamRelay(int to, Lines lines) : to_(to) {
  if (lines == Lines::kErrorsOnce) repeated_.emplace();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw DeviceError("[launch] pipe: {}. Hint: ulimit -n",
                      std::strerror(errno));
  read_ = ends[0];
  write_ = ends[1];
}

StreamRelay::~StreamRelay() {
  given_up_ = true;
  if (thread_.joinable()) thread_.join();
  close(read_);
  if (write_ >= 0) close(write_);
}

void StreamRelay::start() {
  close(write_);
  write_ = -1;
  thread_ = std::thread([this] { pass_on(); });
}

void StreamRelay::pass_on() {
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
  std::array<char, 1 << 16> buffer;
  while (!given_up_) {
    if (!is_ready(read_, POLLIN)) {
      if (child_gone_) break;
      continue;
    }
    const ssize_t got = read(read_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const std::span bytes(buffer.data(), static_cast<size_t>(got));
    if (repeated_)
      write_all(repeated_->pass({bytes.data(), bytes.size()}));
    else
      write_all(bytes);
  }
  if (repeated_) write_all(repeated_->rest());
  done_ = true;
}

void StreamRelay::write_all(std::span<const char> bytes) {
  while (!bytes.empty() && !failed_)
    if (!write_some(to_, bytes, given_up_)) {
      closed_ = errno == EPIPE;
      failed_ = true;
    }
}

}  // namespace chexnet
