#include "line_socket.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace chexnet {
namespace {

// A sockaddr of either family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

std::optional<SocketAddress> socket_address(const Endpoint& of) {
  SocketAddress result;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&result.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
  const auto port = htons(static_cast<uint16_t>(of.port));

  if (inet_pton(AF_INET, of.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    result.size = sizeof *v4;
    return result;
  }
  if (inet_pton(AF_INET6, of.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    result.size = sizeof *v6;
    return result;
  }
  return std::nullopt;
}

Endpoint endpoint_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    return {text.data(), ntohs(v4->sin_port)};
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  return {text.data(), ntohs(v6->sin6_port)};
}

// Means this host, and no other, on every host that knows the way.
bool is_global(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
  }
  if (address->sa_family != AF_INET6) return false;
  const in6_addr& v6 =
      reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return !IN6_IS_ADDR_LINKLOCAL(&v6) && !IN6_IS_ADDR_LOOPBACK(&v6) &&
         !IN6_IS_ADDR_V4MAPPED(&v6);
}

int open_socket(const SocketAddress& address, int type) {
  return ::socket(address.storage.ss_family,
                  type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

bool may_go_on(int error) {
  return error == EAGAIN || error == ENOTCONN || error == EINTR;
}

}  // namespace

LineSocket::LineSocket(LineSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      peer_(std::move(other.peer_)),
      partial_(std::move(other.partial_)),
      unsent_(std::move(other.unsent_)) {}
LineSocket& LineSocket::operator=(LineSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(peer_, other.peer_);
  std::swap(partial_, other.partial_);
  std::swap(unsent_, other.unsent_);
  return *this;
}
LineSocket::~LineSocket() {
  if (fd_ >= 0) close(fd_);
}

std::optional<LineSocket> LineSocket::connect(const Endpoint& to,
                                              const std::string& first_line) {
  const auto address = socket_address(to);
  if (!address) return std::nullopt;
  LineSocket socket(open_socket(*address, SOCK_STREAM), to.address);
  if (socket.fd_ < 0) return std::nullopt;
  if (::connect(socket.fd_, address->get(), address->size) != 0 &&
      errno != EINPROGRESS)
    return std::nullopt;
  socket.unsent_ = first_line + "\n";
  return socket;
}

bool LineSocket::flush() {
  while (!unsent_.empty()) {
    const auto sent = ::send(fd_, unsent_.data(), unsent_.size(),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    // Still connecting, or the kernel's buffer is full.
    if (sent < 0) return may_go_on(errno);
    unsent_.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

bool LineSocket::send(const std::string& line) {
  if (!flush()) return false;
  if (!unsent_.empty()) return true;
  unsent_ = line + "\n";
  return flush();
}

std::optional<std::vector<std::string>> LineSocket::receive() {
  std::array<char, 8192> buffer;
  for (size_t taken = 0; taken < kLongestLine;) {
    const auto count = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && may_go_on(errno)) break;
    if (count <= 0) return std::nullopt;
    partial_.append(buffer.data(), static_cast<size_t>(count));
    taken += static_cast<size_t>(count);
  }

  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = 0; (end = partial_.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    lines.push_back(partial_.substr(begin, end - begin));
  partial_.erase(0, begin);

  if (partial_.size() > kLongestLine) return std::nullopt;
  return lines;
}

LineListener::LineListener(const std::string& address) {
  auto at = socket_address({address, 0});
  if (!at) return;
  fd_ = open_socket(*at, SOCK_STREAM);
  const bool listens = fd_ >= 0 && bind(fd_, at->get(), at->size) == 0 &&
                       listen(fd_, SOMAXCONN) == 0 &&
                       getsockname(fd_, at->get(), &at->size) == 0;
  if (listens) endpoint_ = endpoint_of(at->get());
}
LineListener::LineListener(LineListener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      endpoint_(std::move(other.endpoint_)) {}
LineListener::~LineListener() {
  if (fd_ >= 0) close(fd_);
}

std::optional<LineSocket> LineListener::accept() {
  SocketAddress peer;
  const int fd =
      accept4(fd_, peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return LineSocket(fd, endpoint_of(peer.get()).address);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || !is_global(entry->ifa_addr)) continue;
    if ((entry->ifa_flags & IFF_UP) != 0)
      found.push_back(endpoint_of(entry->ifa_addr).address);
  }
  freeifaddrs(list);
  return found;
}

std::optional<std::string> address_towards(const std::string& address) {
  constexpr int kAnyPort = 9;
  const auto to = socket_address({address, kAnyPort});
  if (!to) return std::nullopt;
  // A datagram socket that connects looks for a route and sends nothing.
  const LineSocket socket(open_socket(*to, SOCK_DGRAM), address);
  SocketAddress from;
  if (socket.fd() < 0 || ::connect(socket.fd(), to->get(), to->size) != 0 ||
      getsockname(socket.fd(), from.get(), &from.size) != 0)
    return std::nullopt;
  return endpoint_of(from.get()).address;
}

std::vector<std::string> without_own(const std::vector<std::string>& theirs,
                                     const std::vector<std::string>& own) {
  std::vector<std::string> found;
  for (const auto& address : theirs)
    if (std::ranges::find(own, address) == own.end()) found.push_back(address);
  return found;
}

}  // namespace chexnet
