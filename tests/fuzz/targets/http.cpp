// Answers of an HTTP server, byte by byte, through libcurl: what comes is no
// longer than what was requested.
#include "data/storage/http.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "chexnet/core/signals_blocked.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

// On loopback. Answers each connection with the present input and closes it.
class Server {
 public:
  Server() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    require(::bind(socket_, any, size) == 0 && ::listen(socket_, 8) == 0 &&
                ::getsockname(socket_, any, &size) == 0,
            "a server on loopback starts");
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
    // It lives as long as the process, and signals are for other threads.
    const SignalsBlocked blocked;
    thread_ = std::jthread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  void answer(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    answer_ = text_of(bytes);
  }
  const std::string& url() const { return url_; }

 private:
  void serve() {
    for (int fd = 0; (fd = ::accept(socket_, nullptr, nullptr)) >= 0;) {
      char request[4096];
      std::string answer;
      {
        const std::lock_guard lock(mutex_);
        answer = answer_;
      }
      // The client may have gone: that is its right.
      if (::recv(fd, request, sizeof request, 0) > 0)
        (void)!::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::shutdown(fd, SHUT_WR);
      while (::recv(fd, request, sizeof request, 0) > 0) continue;
      ::close(fd);
    }
  }

  int socket_;
  std::string url_;
  std::mutex mutex_;  // guards the one below
  std::string answer_;
  std::jthread thread_;
};

void run(Bytes bytes) {
  static Server server;
  static std::vector<std::byte> body;
  server.answer(bytes);
  HttpRequest request;
  request.url = server.url();
  request.headers = {{"range", "bytes=0-9"}};
  request.max_bytes = 100;
  request.timeout_s = 2;
  request.past_proxies = true;
  const HttpResponse response = http_exchange(request, body);
  require(body.size() <= request.max_bytes, "no more comes than is allowed");
  require((response.status == 0) == !response.failure.empty(),
          "there is an answer or a reason");
  require(response.content_range.find_first_of("\r\n") == std::string::npos,
          "a header is one line");
}

std::vector<std::string> seeds() {
  return {
      "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/40\r\n"
      "Content-Length: 10\r\nConnection: close\r\n\r\n0123456789",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
      "0\r\ncontent-range:  x \r\n\r\n",
      "HTTP/1.1 404 Not Found\r\nContent-Length: 200\r\n\r\n<Error>",
      "HTTP/1.0 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" +
          std::string(150, 'x')};
}

const Registered kTarget{{"http", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
