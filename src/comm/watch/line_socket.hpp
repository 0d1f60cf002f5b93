// Lines of text over TCP that never block: for the watchdog's reports. IPv4 and
// IPv6.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace chexnet {

// Where somebody listens: "10.0.0.1" or "2001:db8::1", and a port.
struct Endpoint {
  std::string address;
  int port = 0;
};

// One connection; closed by destruction.
class LineSocket {
 public:
  // Longer lines end a connection. A report of 500 ranks of a host fits.
  static constexpr size_t kLongestLine = 64 << 10;

  LineSocket(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {}
  LineSocket(LineSocket&& other) noexcept;
  LineSocket& operator=(LineSocket&& other) noexcept;
  ~LineSocket();

  // Begins to connect; `first_line` is sent as soon as that is possible.
  static std::optional<LineSocket> connect(const Endpoint& to,
                                           const std::string& first_line);
  int fd() const { return fd_; }
  const std::string& peer() const { return peer_; }  // the other side's address
  // False when the connection is lost. A line that does not fit the kernel's
  // buffer is dropped: the next report replaces it.
  bool send(const std::string& line);
  // Whole lines received so far, of at most kLongestLine bytes a call; nothing
  // when the connection is lost or a line is too long.
  std::optional<std::vector<std::string>> receive();

 private:
  bool flush();
  int fd_;
  std::string peer_, partial_, unsent_;
};

// Accepts connections to one address of this host, on a port the system
// chooses.
class LineListener {
 public:
  // Without a port where the address cannot be listened on.
  explicit LineListener(const std::string& address);
  LineListener(LineListener&& other) noexcept;
  LineListener& operator=(LineListener&&) = delete;
  ~LineListener();
  int fd() const { return fd_; }
  const Endpoint& endpoint() const { return endpoint_; }
  std::optional<LineSocket> accept();

 private:
  int fd_ = -1;
  Endpoint endpoint_;
};

// Addresses by which other hosts may reach this one: of interfaces that are up,
// without 127.0.0.1 and link-local ones.
std::vector<std::string> own_addresses();
// This host's address from which packets to `address` leave, where there is a
// route. Sends nothing.
std::optional<std::string> address_towards(const std::string& address);
// Those of `theirs` that are not ours too: a bridge for containers has the same
// address on many hosts, and leads back to the host itself.
std::vector<std::string> without_own(const std::vector<std::string>& theirs,
                                     const std::vector<std::string>& own);

}  // namespace chexnet
