#include "comm/watch/observer_links.hpp"

#include <poll.h>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

void wait_for(int fd) {
  pollfd one{fd, POLLIN, 0};
  poll(&one, 1, 5000);
}

// An observer's port, and a clock that stands still until a test moves it.
struct LinksBed {
  double now = 1000;
  LineListener first{"127.0.0.1"}, second{"127.0.0.1"};
  ObserverLinks links{"greeting", [this] { return now; }};

  // The first line that comes to `listener`.
  static std::optional<LineSocket> accept(LineListener& listener) {
    wait_for(listener.fd());
    return listener.accept();
  }
  static bool nobody_comes(LineListener& listener) {
    pollfd one{listener.fd(), POLLIN, 0};
    return poll(&one, 1, 20) == 0;
  }
};

}  // namespace

TEST_CASE("the greeting, then reports go out, and answers come back") {
  LinksBed bed;
  bed.links.add({bed.first.endpoint()});
  CHECK(bed.links.observers() == 1);
  CHECK(bed.links.exchange(0, "report 1").empty());
  auto observer = LinksBed::accept(bed.first);
  REQUIRE(observer);
  std::vector<std::string> lines;
  for (int i = 2; i < 100 && lines.size() < 3; ++i) {
    bed.links.exchange(0, "report " + std::to_string(i));
    wait_for(observer->fd());
    const auto more = observer->receive();
    REQUIRE(more);
    lines.insert(lines.end(), more->begin(), more->end());
  }
  REQUIRE(lines.size() >= 3);
  CHECK(lines[0] == "greeting");
  CHECK(lines[1].starts_with("report "));
  REQUIRE(observer->send("answer"));
  std::vector<std::string> answers;
  for (int i = 0; i < 1000 && answers.empty(); ++i) {
    answers = bed.links.exchange(0, "report");
    pollfd none{-1, 0, 0};
    poll(&none, 1, 1);
  }
  CHECK(answers == std::vector<std::string>{"answer"});
}

TEST_CASE("a lost connection is made again, at most once a second") {
  LinksBed bed;
  bed.links.add({bed.first.endpoint()});
  bed.links.exchange(0, "report");
  REQUIRE(LinksBed::accept(bed.first));  // and closed at once
  for (int i = 0; i < 200; ++i) {
    bed.links.exchange(0, "report");
    pollfd none{-1, 0, 0};
    poll(&none, 1, 1);
  }
  CHECK(LinksBed::nobody_comes(bed.first));
  bed.now += ObserverLinks::kConnectEvery_s + 0.01;
  bed.links.exchange(0, "report");
  CHECK(LinksBed::accept(bed.first));
}

TEST_CASE("an observer's addresses are tried in turn, when one had its time") {
  LinksBed bed;
  bed.links.add({bed.first.endpoint(), bed.second.endpoint()});
  bed.links.exchange(0, "report");
  const auto first = LinksBed::accept(bed.first);
  REQUIRE(first);
  bed.now += 1.5;
  bed.links.reconnect(0);  // too early
  bed.links.exchange(0, "report");
  CHECK(LinksBed::nobody_comes(bed.second));
  bed.now += 1;
  bed.links.reconnect(0);
  bed.links.exchange(0, "report");
  CHECK(LinksBed::accept(bed.second));
  bed.now += 2.5;
  bed.links.reconnect(0);
  bed.links.exchange(0, "report");
  CHECK(LinksBed::accept(bed.first));
}

TEST_CASE(
    "an observer without an address is silent, and one that floods ends its "
    "connection") {
  LinksBed bed;
  bed.links.add({});
  bed.links.add({bed.first.endpoint()});
  CHECK(bed.links.exchange(0, "report").empty());
  bed.links.exchange(1, "report");
  auto observer = LinksBed::accept(bed.first);
  REQUIRE(observer);
  size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    observer->send(std::string(LineSocket::kLongestLine, 'x'));
    size_t bytes = 0;
    for (const auto& line : bed.links.exchange(1, "report"))
      bytes += line.size();
    most = std::max(most, bytes);
  }
  CHECK(most <= 3 * LineSocket::kLongestLine);
}
