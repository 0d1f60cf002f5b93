#include "comm/watch/line_socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

using Lines = std::vector<std::string>;

// Two ends of a TCP connection on the loopback.
struct Pair {
  LineListener listener{"127.0.0.1"};
  std::optional<LineSocket> near, far;

  explicit Pair(const std::string& greeting = "hello") {
    near = LineSocket::connect(listener.endpoint(), greeting);
    REQUIRE(near);
    wait(listener.fd(), POLLIN);
    far = listener.accept();
    REQUIRE(far);
  }
  static void wait(int fd, short events) {
    pollfd one{fd, events, 0};
    poll(&one, 1, 1000);
  }
  // Bytes as they come, not lines.
  void send_raw(const std::string& text) const {
    for (size_t at = 0; at < text.size();) {
      wait(near->fd(), POLLOUT);
      const auto sent =
          ::send(near->fd(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }
  // Until `count` lines have come, or the connection is lost.
  std::optional<Lines> receive(size_t count) {
    Lines all;
    while (all.size() < count) {
      wait(far->fd(), POLLIN);
      const auto lines = far->receive();
      if (!lines) return std::nullopt;
      all.insert(all.end(), lines->begin(), lines->end());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("lines arrive whole and in order, the greeting first") {
  Pair pair("token");
  CHECK(pair.far->peer() == "127.0.0.1");
  CHECK(pair.near->send("one"));
  CHECK(pair.near->send(""));
  CHECK(pair.near->send("three"));
  CHECK(pair.receive(4) == Lines{"token", "one", "", "three"});
}

TEST_CASE("nothing has come is no lost connection") {
  Pair pair;
  CHECK(pair.near->receive() == Lines{});
}

TEST_CASE("a line that comes in pieces is one line") {
  Pair pair;
  REQUIRE(pair.near->send("first"));
  REQUIRE(pair.receive(2));
  for (const char* piece : {"a", "bc", "d\ne"}) {
    pair.send_raw(piece);
    Pair::wait(pair.far->fd(), POLLIN);
    const auto lines = pair.far->receive();
    REQUIRE(lines);
    CHECK(*lines == (std::string(piece) == "d\ne" ? Lines{"abcd"} : Lines{}));
  }
  pair.send_raw("f\n");
  CHECK(pair.receive(1) == Lines{"ef"});
}

TEST_CASE(
    "a line of the longest length arrives, a longer one ends the connection") {
  Pair fits;
  REQUIRE(fits.near->send("go"));
  REQUIRE(fits.receive(2));
  const std::string longest(LineSocket::kLongestLine, 'x');
  std::thread sender([&] { fits.send_raw(longest + "\n"); });
  CHECK(fits.receive(1) == Lines{longest});
  sender.join();

  Pair endless;
  std::thread flood([&] {
    endless.send_raw(std::string(4 * LineSocket::kLongestLine, 'x'));
  });
  std::optional<Lines> lines = Lines{};
  for (int i = 0; i < 30 && lines; ++i) {
    Pair::wait(endless.far->fd(), POLLIN);
    lines = endless.far->receive();
  }
  CHECK_FALSE(lines);
  endless.far.reset();  // the sender's next byte is refused
  flood.join();
}

TEST_CASE("a peer that closes is a lost connection on the other side") {
  Pair pair;
  REQUIRE(pair.near->send("last"));
  REQUIRE(pair.receive(2));
  pair.near.reset();
  Pair::wait(pair.far->fd(), POLLIN);
  CHECK_FALSE(pair.far->receive());
  bool lost = false;
  for (int i = 0; i < 100 && !lost; ++i) lost = !pair.far->send("anybody?");
  CHECK(lost);
}

TEST_CASE(
    "a line that does not fit the kernel's buffer is dropped, the next ones "
    "come") {
  Pair pair;
  const std::string big(LineSocket::kLongestLine, 'x');
  for (int i = 0; i < 400; ++i) REQUIRE(pair.near->send(big));  // nobody reads
  size_t whole = 0;
  bool last_came = false;
  for (int i = 0; i < 5000 && !last_came; ++i) {
    pair.near->send("last");
    pollfd one{pair.far->fd(), POLLIN, 0};
    poll(&one, 1, 10);
    const auto lines = pair.far->receive();
    REQUIRE(lines);
    for (const auto& line : *lines) {
      if (line == big) ++whole;
      CHECK((line == big || line == "hello" || line == "last"));
      last_came = last_came || line == "last";
    }
  }
  CHECK(last_came);
  CHECK(whole > 0);
  CHECK(whole < 400);
}

TEST_CASE("a port where nobody listens is a lost connection, not an error") {
  Endpoint nobody;
  {
    const LineListener closed("127.0.0.1");
    nobody = closed.endpoint();
  }
  auto socket = LineSocket::connect(nobody, "hello");
  if (socket) {
    Pair::wait(socket->fd(), POLLIN | POLLOUT);
    bool lost = false;
    for (int i = 0; i < 100 && !lost; ++i)
      lost = !socket->send("x") || !socket->receive();
    CHECK(lost);
  }
}

TEST_CASE("addresses are texts of either family") {
  CHECK_FALSE(LineSocket::connect({"node1", 80}, "x"));
  CHECK_FALSE(LineSocket::connect({"", 80}, "x"));
  CHECK_FALSE(LineSocket::connect({"1.2.3", 80}, "x"));
  CHECK_FALSE(LineSocket::connect({"[::1]", 80}, "x"));
  CHECK(LineListener("nonsense").endpoint().port == 0);
  CHECK(LineListener("").endpoint().port == 0);
  CHECK(address_towards("127.0.0.1") == "127.0.0.1");
  CHECK_FALSE(address_towards("nonsense"));

  LineListener v6("::1");
  if (v6.endpoint().port == 0) {
    WARN("skipped: no IPv6 here");
    return;
  }
  CHECK(v6.endpoint().address == "::1");
  CHECK(address_towards("::1") == "::1");
  auto near = LineSocket::connect(v6.endpoint(), "hello");
  REQUIRE(near);
  Pair::wait(v6.fd(), POLLIN);
  auto far = v6.accept();
  REQUIRE(far);
  CHECK(far->peer() == "::1");
  CHECK(near->send("x"));
  Pair::wait(far->fd(), POLLIN);
  CHECK(far->receive()->front() == "hello");
}

TEST_CASE("a socket that was moved belongs to its new owner alone") {
  Pair pair;
  LineSocket moved = std::move(*pair.near);
  CHECK(pair.near->fd() == -1);
  pair.near.reset();
  CHECK(moved.send("still here"));
  CHECK(pair.receive(2) == Lines{"hello", "still here"});
}
