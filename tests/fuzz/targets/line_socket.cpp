// A connection between hosts: bytes that come in any pieces are the same lines,
// and a line without end ends the connection. Addresses that hosts name for
// themselves are taken or refused.
#include "comm/watch/line_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

// Two ends of a connection over the loopback interface.
struct Loopback {
  Loopback() {
    LineListener listener("127.0.0.1");
    there = LineSocket::connect(listener.endpoint(), "first");
    require(there.has_value(), "a listener can be connected to");
    pollfd wanted{listener.fd(), POLLIN, 0};
    require(poll(&wanted, 1, 1000) == 1, "a connection comes");
    here = listener.accept();
    require(here && here->peer() == "127.0.0.1", "its peer is known");
  }
  void expect(const std::vector<std::string>& wanted) {
    std::vector<std::string> got;
    while (got.size() < wanted.size()) {
      pollfd end{here->fd(), POLLIN, 0};
      require(poll(&end, 1, 1000) == 1, "a line comes");
      const auto lines = here->receive();
      require(lines.has_value(), "the connection stays");
      got.insert(got.end(), lines->begin(), lines->end());
    }
    require(got == wanted, "lines come as they were sent");
  }
  std::optional<LineSocket> there, here;
};

// A line as another host would send it.
void check_line(const std::string& line) {
  static Loopback ends;
  static bool is_first = true;
  require(ends.there->send(line), "a line can be sent");
  // Who connects leaves a line to be sent before all others.
  ends.expect(is_first ? std::vector<std::string>{"first", line}
                       : std::vector{line});
  is_first = false;
}

void check_address(const std::string& address) {
  // A link's own address, as towards a multicast group, lacks its interface.
  if (const auto own = address_towards(address);
      own && !own->starts_with("fe80:"))
    require(address_towards(*own).has_value(), "an own address is an address");
  const auto ours = own_addresses();
  for (const auto& theirs : without_own({address}, ours))
    require(std::ranges::find(ours, theirs) == ours.end(),
            "what is ours too leads nowhere else");
}

void run(Bytes bytes) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
          "a pair of sockets can be had");
  LineSocket socket(ends[0], "peer");
  Reader choices(bytes);
  const auto any = static_cast<size_t>(choices.number(1, 9000));
  const std::string text = text_of(choices.rest());
  // Each piece costs system calls.
  const size_t piece = std::max(any, text.size() / 100);
  std::string got;
  bool lost = false;
  for (size_t at = 0; at < text.size() && !lost; at += piece) {
    const auto part = text.substr(at, piece);
    require(::write(ends[1], part.data(), part.size()) ==
                static_cast<ssize_t>(part.size()),
            "a piece fits the buffer");
    const auto lines = socket.receive();
    lost = !lines;
    if (lines)
      for (const auto& line : *lines) got += line + "\n";
  }
  if (lost) {
    require(text.size() - got.size() > LineSocket::kLongestLine,
            "a connection ends by a long line alone");
  } else {
    const auto end = text.rfind('\n');
    require(got == text.substr(0, end == std::string::npos ? 0 : end + 1),
            "every whole line comes");
  }
  const auto line = text.substr(0, std::min<size_t>(text.find('\n'), 1000));
  check_line(line);
  check_address(line);
  close(ends[1]);
  for (int looks = 0; socket.receive(); ++looks)
    require(looks < 3, "a connection that was closed is lost");
}

std::vector<std::string> seeds() {
  return {raw("\x00\x07one\ntwo\nthree"),
          raw("\x20\x00") + std::string(70000, 'x'), raw("\x00\x00a\nb\n\nc"),
          raw("\x00\x01") + "127.0.0.1\n", raw("\x00\x01::1\n")};
}

const Registered kTarget{{"line_socket", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
