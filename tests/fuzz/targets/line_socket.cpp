// A connection between hosts: bytes that come in any pieces are the same lines,
// and a line without end ends the connection.
#include "watch/line_socket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

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
  close(ends[1]);
  for (int looks = 0; socket.receive(); ++looks)
    require(looks < 3, "a connection that was closed is lost");
}

std::vector<std::string> seeds() {
  return {raw("\x00\x07one\ntwo\nthree"),
          raw("\x20\x00") + std::string(70000, 'x'), raw("\x00\x00a\nb\n\nc")};
}

const Registered kTarget{{"line_socket", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
