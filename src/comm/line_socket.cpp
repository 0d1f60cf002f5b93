#include "line_socket.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace chexnet {

LineSocket::LineSocket(LineSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      partial_(std::move(other.partial_)),
      unsent_(std::move(other.unsent_)) {}
LineSocket& LineSocket::operator=(LineSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(partial_, other.partial_);
  std::swap(unsent_, other.unsent_);
  return *this;
}
LineSocket::~LineSocket() {
  if (fd_ >= 0) close(fd_);
}

std::optional<LineSocket> LineSocket::connect(const std::vector<std::string>& addresses, int port,
                                              std::size_t attempt) {
  if (addresses.empty()) return std::nullopt;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, addresses[attempt % addresses.size()].c_str(), &to.sin_addr) != 1)
    return std::nullopt;
  LineSocket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd_ < 0) return std::nullopt;
  if (::connect(socket.fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
      errno != EINPROGRESS)
    return std::nullopt;
  return socket;
}

bool LineSocket::send(const std::string& line) {
  if (unsent_.empty()) unsent_ = line + "\n";
  const auto sent = ::send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
  // ENOTCONN and EAGAIN: still connecting, or the buffer is full.
  return sent >= 0 || errno == EAGAIN || errno == ENOTCONN || errno == EINTR;
}

std::optional<std::vector<std::string>> LineSocket::receive() {
  std::vector<std::string> lines;
  std::array<char, 8192> buffer;
  constexpr std::size_t kLongestLine = std::size_t{1} << 20;
  for (;;) {
    const auto count = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == ENOTCONN || errno == EINTR)) break;
    if (count <= 0 || partial_.size() > kLongestLine) return std::nullopt;
    partial_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  for (std::size_t end = 0; (end = partial_.find('\n')) != std::string::npos;
       partial_.erase(0, end + 1))
    lines.push_back(partial_.substr(0, end));
  return lines;
}

LineListener::LineListener()
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  if (fd_ >= 0 && bind(fd_, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
      listen(fd_, SOMAXCONN) == 0 &&
      getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &size) == 0)
    port_ = ntohs(any.sin_port);
}
LineListener::~LineListener() {
  if (fd_ >= 0) close(fd_);
}

std::optional<LineSocket> LineListener::accept() {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return LineSocket(fd);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> found, loopback;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET ||
        (entry->ifa_flags & IFF_UP) == 0)
      continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr,
              text.data(), text.size());
    ((entry->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : found).emplace_back(text.data());
  }
  freeifaddrs(list);
  found.insert(found.end(), loopback.begin(), loopback.end());
  return found;
}

}  // namespace chexnet
