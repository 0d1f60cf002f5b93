// Exchanges with a server of this test on loopback.
#include "data/storage/http.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

// Answers two requests of each connection with `answer`, one where it closes
// the connection, or none where it is empty.
class Server {
 public:
  explicit Server(std::string answer, std::chrono::microseconds per_byte = {})
      : answer_(std::move(answer)), per_byte_(per_byte) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket_, 8) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address),
                          &size) == 0);
    port_ = ntohs(address.sin_port);
    if (!answer_.empty()) thread_ = std::jthread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(socket_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/x";
  }
  int connections() const { return connections_; }

 private:
  void serve() {
    for (int fd = 0; (fd = ::accept(socket_, nullptr, nullptr)) >= 0;
         ::close(fd)) {
      ++connections_;
      char request[4096];
      const bool closes = answer_.find("Connection: close") != answer_.npos;
      int answers = closes ? 1 : 2;
      while (answers-- > 0 && ::read(fd, request, sizeof request) > 0)
        if (!send(fd)) break;
    }
  }
  bool send(int fd) const {
    if (per_byte_.count() == 0)
      return ::write(fd, answer_.data(), answer_.size()) > 0;
    for (const char byte : answer_) {
      if (::send(fd, &byte, 1, MSG_NOSIGNAL) != 1) return false;
      std::this_thread::sleep_for(per_byte_);
    }
    return true;
  }

  std::string answer_;
  std::chrono::microseconds per_byte_;
  int socket_ = -1, port_ = 0;
  std::atomic<int> connections_ = 0;
  std::jthread thread_;
};

HttpRequest request_to(const Server& server) {
  HttpRequest request;
  request.url = server.url();
  request.max_bytes = 1000;
  return request;
}

}  // namespace

TEST_CASE(
    "a request for secrets passes no proxy, whatever the environment says") {
  const Server server(
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  HttpRequest request = request_to(server);
  std::vector<std::byte> body;
  CHECK(http_exchange(request, body).status == 0);  // nobody listens there
  request.past_proxies = true;
  CHECK(http_exchange(request, body).status == 200);
  ::unsetenv("http_proxy");
}

TEST_CASE("a stop ends an exchange with a server that says nothing") {
  const Server server("");
  std::stop_source stop;
  HttpRequest request = request_to(server);
  request.timeout_s = 3600;
  request.stop = stop.get_token();
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request_stop();
  });
  std::vector<std::byte> body;
  CHECK(http_exchange(request, body).status == 0);
}

TEST_CASE(
    "a part comes with its range, whatever the case of the header's name") {
  const Server server(
      "HTTP/1.1 206 Partial Content\r\ncontent-RANGE:   bytes 5-8/100  "
      "\r\nContent-Length: 4\r\n"
      "Connection: close\r\n\r\nabcd");
  std::vector<std::byte> body;
  const HttpResponse response = http_exchange(request_to(server), body);
  CHECK(response.status == 206);
  CHECK(response.content_range == "bytes 5-8/100");
  CHECK(body.size() == 4);
}

TEST_CASE("an answer that drips is a stall") {
  const Server server(
      "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + std::string(900, 'x'),
      std::chrono::milliseconds(100));
  HttpRequest request = request_to(server);
  request.timeout_s = 1;
  std::vector<std::byte> body;
  CHECK(http_exchange(request, body).status == 0);
  CHECK(body.size() < 900);
}

TEST_CASE("an answer that drips too fast for a stall ends in its time") {
  const Server server(
      "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nConnection: "
      "close\r\n\r\n" +
          std::string(9000, 'x'),
      std::chrono::microseconds(200));
  HttpRequest request = request_to(server);
  request.max_bytes = 9000;
  request.total_s = 1;
  std::vector<std::byte> body;
  CHECK(http_exchange(request, body).status == 0);
  CHECK(body.size() < 9000);
}

TEST_CASE("a connection is kept for the next request of a thread") {
  const Server server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  std::vector<std::byte> body;
  for (int i = 0; i < 2; ++i)
    CHECK(http_exchange(request_to(server), body).status == 200);
  CHECK(server.connections() == 1);
}

// Before libcurl 8.1 a handle that was used again then read the freed headers
// of the last answer; the address sanitizer shows it.
TEST_CASE("an answer may begin with a line that continues none") {
  const Server server(
      "HTTP/1.1 200 OK\r\n folded: 1\r\nContent-Length: 2\r\n"
      "Connection: close\r\n\r\nok");
  std::vector<std::byte> body;
  for (int i = 0; i < 3; ++i) {
    http_exchange(request_to(server), body);
    CHECK(body.size() <= 2);
  }
}

TEST_CASE("a header of megabytes is a failure with its reason") {
  const Server server("HTTP/1.1 200 OK\r\nX: " + std::string(3'000'000, 'x') +
                      "\r\nContent-Length: 2\r\n\r\nok");
  std::vector<std::byte> body;
  const HttpResponse response = http_exchange(request_to(server), body);
  CHECK(response.status == 0);
  CHECK(response.failure.find("header") != std::string::npos);
}

TEST_CASE("a status that is none is a failure with a reason") {
  const Server server("HTTP/2 0\r\nConnection: close\r\n\r\n");
  std::vector<std::byte> body;
  const HttpResponse response = http_exchange(request_to(server), body);
  CHECK(response.status == 0);
  CHECK_FALSE(response.failure.empty());
}

TEST_CASE("a body that ends before its length is no answer") {
  const Server server(
      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nabcd");
  std::vector<std::byte> body;
  const HttpResponse response = http_exchange(request_to(server), body);
  CHECK(response.status == 0);
  CHECK_FALSE(response.failure.empty());
}

TEST_CASE("more than was asked for ends the exchange, an error page is cut") {
  const std::string page(1001, 'x');
  const std::string rest =
      "Content-Length: 1001\r\nConnection: close\r\n\r\n" + page;
  std::vector<std::byte> body;
  {
    const Server server("HTTP/1.1 200 OK\r\n" + rest);
    const HttpResponse response = http_exchange(request_to(server), body);
    CHECK((response.status == 0 && response.too_long));
  }
  const Server server("HTTP/1.1 503 Slow Down\r\n" + rest);
  const HttpResponse response = http_exchange(request_to(server), body);
  CHECK(response.status == 503);
  CHECK(body.size() <= 1000);
}

TEST_CASE(
    "nobody who answers is a failure with its reason, and the next exchange "
    "works") {
  std::vector<std::byte> body;
  HttpRequest nobody;
  nobody.url = "http://127.0.0.1:1/x";
  nobody.max_bytes = 10;
  const HttpResponse refused = http_exchange(nobody, body);
  CHECK(refused.status == 0);
  CHECK_FALSE(refused.failure.empty());
  const Server server(
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  CHECK(http_exchange(request_to(server), body).status == 200);
  nobody.url = "ftp://127.0.0.1/x";
  CHECK(http_exchange(nobody, body).status == 0);
}
