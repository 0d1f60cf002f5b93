#include "comm/watch/report_receiver.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "comm/watch/messages.hpp"
#include "comm/watch/observer_links.hpp"
#include "comm/watch/peers.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

const RunTokens kTokens = {"report-token", "answer-token"};

// Whether it comes true; looked at for half a minute.
template <class Condition>
bool comes_true(const Condition& condition) {
  const double end = now_s() + 30;
  while (!condition()) {
    if (now_s() > end) return false;
    usleep(1000);
  }
  return true;
}

// Whoever reaches the port.
class Stranger {
 public:
  explicit Stranger(const Endpoint& to) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(to.port));
    inet_pton(AF_INET, to.address.c_str(), &address.sin_addr);
    REQUIRE(connect(fd_, reinterpret_cast<const sockaddr*>(&address),
                    sizeof address) == 0);
  }
  ~Stranger() { close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  void say(const std::string& text) const {
    for (size_t at = 0; at < text.size();) {
      const auto sent = send(fd_, text.data() + at, text.size() - at,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }
  bool is_shown_out() const {
    char answer[256];
    ssize_t got = 0;
    do {
      got = recv(fd_, answer, sizeof answer, MSG_DONTWAIT);
    } while (got > 0);
    return got == 0 || errno != EAGAIN;
  }

 private:
  int fd_;
};

// An observer on the loopback, and a host that reports to it.
struct ReceiverBed {
  ReportReceiver receiver{{"127.0.0.1"}, kTokens.report};
  ObserverLinks links{kTokens.report, now_s};
  std::vector<RankView> views = std::vector<RankView>(2);
  int reports = 0;

  ReceiverBed() {
    REQUIRE(receiver.endpoints().size() == 1);
    links.add(receiver.endpoints());
    views[1].rank = 1;
  }
  Endpoint endpoint() const { return receiver.endpoints().front(); }
  void look(double now) {
    receiver.take(now, [&](const std::string& line) -> std::string {
      if (!read_report(line, views)) return "";
      ++reports;
      return answer_line(kTokens.answer, 0);
    });
  }
  // Looks, in no time of the receiver's clock, until it comes true.
  template <class Condition>
  bool looks_until(const Condition& condition) {
    return comes_true([&, now = now_s()] {
      look(now);
      return condition();
    });
  }
  // Exchanges until a report has arrived.
  void report_once() {
    RankView view;
    view.rank = 1;
    view.step = 7;
    const int before = reports;
    REQUIRE(looks_until([&] {
      links.exchange(0, report_line({view}));
      return reports > before;
    }));
  }
};

}  // namespace

TEST_CASE("a host's report arrives and is answered") {
  ReceiverBed bed;
  bed.report_once();
  CHECK(bed.views[1].step == 7);
  CHECK(bed.receiver.connections() == 1);
  bed.receiver.tell_all(answer_line(kTokens.answer, 7));
  std::vector<std::string> answers;
  CHECK(comes_true([&] {
    answers = bed.links.exchange(0, "{}");
    return !answers.empty() && read_answer(answers.back(), kTokens.answer) == 7;
  }));
}

TEST_CASE("strangers who say something else are shown out at once") {
  ReceiverBed bed;
  bed.report_once();
  std::vector<std::unique_ptr<Stranger>> strangers;
  const std::vector<std::string> attacks = {
      std::string(1 << 20, '\n'),
      std::string(1 << 20, 'x'),
      "garbage\n",
      "wrong-token\n{}\n",
      R"({"token":"report-token","ranks":[]})"
      "\n",
      kTokens.answer + "\n"};
  for (const auto& attack : attacks)
    strangers.push_back(std::make_unique<Stranger>(bed.endpoint())),
        strangers.back()->say(attack);
  for (size_t i = 0; i < strangers.size(); ++i) {
    CAPTURE(i);
    CHECK(bed.looks_until([&] {
      // Of a line without an end more must come.
      if (i == 1) strangers[i]->say(std::string(1 << 20, 'x'));
      return strangers[i]->is_shown_out();
    }));
  }
  CHECK(bed.receiver.connections() == 1);
  bed.report_once();
}

TEST_CASE(
    "who knows the token and then sends no report is shown out, and changes "
    "nothing") {
  ReceiverBed bed;
  bed.report_once();
  RankView known, unknown;
  known.rank = 1;
  unknown.rank = 9;
  const std::vector<std::string> reports = {
      "[]", "{}", R"({"ranks":[[1,1,0,false,0,0,0,3]]})",
      report_line({unknown}), report_line({known, unknown})};
  for (const auto& report : reports) {
    const Stranger stranger(bed.endpoint());
    stranger.say(kTokens.report + "\n" + report + "\n");
    CHECK(bed.looks_until([&] { return stranger.is_shown_out(); }));
    CHECK(bed.receiver.connections() == 1);
  }
  CHECK(bed.views[1].step == 7);
}

TEST_CASE(
    "hundreds of idle connections leave descriptors, and room for hosts") {
  ReceiverBed bed;
  std::vector<std::unique_ptr<Stranger>> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(std::make_unique<Stranger>(bed.endpoint()));
    if (i % 40 == 0) bed.look(now_s());
  }
  bed.look(now_s());
  CHECK(bed.receiver.connections() <= ReportReceiver::kMostOfAddress);
  bed.report_once();
  // Two seconds without a word are enough.
  bed.look(now_s() + ReportReceiver::kGreeting_s + 1);
  CHECK(bed.receiver.connections() == 1);
}

TEST_CASE("who reports over ever new connections keeps the last of them") {
  ReceiverBed bed;
  std::vector<std::unique_ptr<Stranger>> hosts;
  for (size_t i = 0; i < 3 * ReportReceiver::kMostOfAddress; ++i) {
    hosts.push_back(std::make_unique<Stranger>(bed.endpoint()));
    hosts.back()->say(kTokens.report + "\n" + report_line({bed.views[1]}) +
                      "\n");
    const int before = bed.reports;
    REQUIRE(bed.looks_until([&] { return bed.reports > before; }));
  }
  CHECK(bed.receiver.connections() == ReportReceiver::kMostOfAddress);
}

TEST_CASE("a look at one host's flood ends") {
  ReceiverBed bed;
  const Stranger flood(bed.endpoint());
  flood.say(kTokens.report + "\n");
  std::string reports;
  for (int i = 0; i < 20000; ++i) reports += "{\"ranks\":[]}\n";
  flood.say(reports);
  // A look takes the bytes after a greeting, and those of one call.
  const auto most =
      static_cast<int>(2 * (LineSocket::kLongestLine + 8192) / 13);
  CHECK(comes_true([&] {
    const int before = bed.reports;
    bed.look(now_s());
    CHECK(bed.reports - before <= most);
    return bed.reports > before;
  }));
}

TEST_CASE("a listener is bound to its address alone, of both families") {
  CHECK(LineListener("127.0.0.2").endpoint().address == "127.0.0.2");
  CHECK(LineListener("10.255.255.1").endpoint().port == 0);  // not ours
  const LineListener v6("::1");
  if (v6.endpoint().port == 0) {
    WARN("skipped: no IPv6 here");
    return;
  }
  CHECK(v6.endpoint().address == "::1");
  CHECK(LineSocket::connect(v6.endpoint(), "x"));
}

TEST_CASE("a host is never told an address that leads back to itself") {
  CHECK(without_own({"172.17.0.1", "10.0.0.2"}, {"10.0.0.1", "172.17.0.1"}) ==
        std::vector<std::string>{"10.0.0.2"});
  for (const auto& address : own_addresses()) {
    CHECK_FALSE(address.starts_with("127."));
    CHECK(address != "::1");
    CHECK_FALSE(address.starts_with("fe80"));
  }
  // Rank 0's host has a bridge that the other one has too, and an address that
  // leads nowhere.
  const std::vector<Peer> peers = {
      {"a", "", 0, {"127.0.0.1", "172.17.0.1", "10.200.0.1"}},
      {"a", "", 1, {"127.0.0.1", "172.17.0.1", "10.200.0.1"}},
      {"b", "", 0, {"127.0.0.2", "172.17.0.1"}}};
  CHECK(addresses_to_listen_on(peers, 0) ==
        std::vector<std::string>{"127.0.0.1"});
  CHECK(choose_observers(peers) == std::vector<int>{0, 2});
  CHECK_FALSE(on_one_host(peers));
  CHECK(choose_observers({peers[0], peers[1]}) == std::vector<int>{0, 1});
}
