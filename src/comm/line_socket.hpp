// Lines of text over TCP that never block: for the watchdog's reports. IPv4.
#pragma once

#include <netinet/in.h>

#include <optional>
#include <string>
#include <vector>

namespace chexnet {

// One connection; closed by destruction.
class LineSocket {
 public:
  explicit LineSocket(int fd) : fd_(fd) {}
  LineSocket(LineSocket&& other) noexcept;
  LineSocket& operator=(LineSocket&& other) noexcept;
  ~LineSocket();

  // Begins to connect to one of `addresses` ("10.0.0.1"), the `attempt`th in turn.
  static std::optional<LineSocket> connect(const std::vector<std::string>& addresses, int port,
                                           std::size_t attempt);
  int fd() const { return fd_; }
  // False when the connection is lost. A line that does not fit the kernel's buffer is dropped:
  // the next report replaces it.
  bool send(const std::string& line);
  // Whole lines received so far; nothing when the connection is lost.
  std::optional<std::vector<std::string>> receive();

 private:
  int fd_;
  std::string partial_, unsent_;
};

// Accepts connections on a port the system chooses; without one where that is impossible.
class LineListener {
 public:
  LineListener();
  ~LineListener();
  LineListener(const LineListener&) = delete;
  LineListener& operator=(const LineListener&) = delete;
  int fd() const { return fd_; }
  int port() const { return port_; }
  std::optional<LineSocket> accept();

 private:
  int fd_ = -1, port_ = 0;
};

// Of this host's interfaces, loopback last.
std::vector<std::string> own_addresses();

}  // namespace chexnet
