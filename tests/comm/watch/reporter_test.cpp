#include "comm/watch/reporter.hpp"

#include <functional>
#include <utility>

#include "fake_parts.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

// Gives the answers that the test has put there; keeps the reports.
class ScriptedChannel final : public ReportChannel {
 public:
  explicit ScriptedChannel(size_t observers)
      : answers(observers), reports(observers) {}
  size_t observers() const override { return answers.size(); }
  std::vector<std::string> exchange(size_t observer,
                                    const std::string& report) override {
    reports[observer].push_back(report);
    return std::exchange(answers[observer], {});
  }
  void reconnect(size_t observer) override { reconnected.push_back(observer); }

  std::vector<std::vector<std::string>> answers, reports;  // [observer]
  std::vector<size_t> reconnected;
};

// Rank `local_rank` of three on host "b", with two observers elsewhere.
struct ReporterBed {
  explicit ReporterBed(int local_rank = 0, bool observer_here = false)
      : ranks(host, local_rank, now),
        end(folder, 3 + local_rank, now),
        reporter({.host = "b",
                  .local_rank = local_rank,
                  .observers = {0, 7},
                  .observer_here = observer_here,
                  .silence_s = 5,
                  .answer_token = kRunTokens.answer},
                 ranks, channel, end, [this] { return now; }) {}
  static FakeHost three_ranks() {
    FakeHost host{.name = "b", .ranks = {}};
    for (int rank : {3, 4, 5}) {
      auto& added = host.ranks.emplace_back();
      added.rank = rank;
      added.heartbeat_s = added.since_s = 1000;
    }
    return host;
  }
  void pass(double seconds) {
    for (const double until = now + seconds; now < until;) {
      now += 0.05;
      reporter.heartbeat(false);
    }
  }

  double now = 1000;
  FakeHost host = three_ranks();
  FakeHostRanks ranks;
  ScriptedChannel channel{2};
  FakeRunFolder folder;
  FakeEnd end;
  Reporter reporter;
};

const std::string kGoOn = answer_line(kRunTokens.answer, 0);

}  // namespace

TEST_CASE(
    "a heartbeat is shown each time, a report sent four times a second to each "
    "observer") {
  ReporterBed bed;
  bed.channel.answers = {{kGoOn}, {kGoOn}};
  bed.pass(2);
  CHECK(bed.host.ranks[0].heartbeat_s == bed.now);
  CHECK(bed.channel.reports[0].size() >= 7);
  CHECK(bed.channel.reports[0].size() <= 9);
  CHECK(bed.channel.reports[0] == bed.channel.reports[1]);
  std::vector<RankView> views(6);
  for (int r = 0; r < 6; ++r) views[static_cast<size_t>(r)].rank = r;
  CHECK(read_report(bed.channel.reports[0].back(), views) ==
        std::vector<int>{3, 4, 5});
  CHECK(views[4].step == 40);
  CHECK(views[4].pid == 104);
}

TEST_CASE("the first rank of a host that runs leads it") {
  const auto leads = [](int local_rank,
                        const std::function<void(FakeHost&)>& change) {
    ReporterBed bed(local_rank);
    change(bed.host);
    return bed.reporter.leads();
  };
  const auto nothing = [](FakeHost&) {};
  CHECK(leads(0, nothing));
  CHECK_FALSE(leads(1, nothing));
  CHECK_FALSE(leads(2, nothing));
  const auto first_gone = [](FakeHost& host) { host.ranks[0].gone = true; };
  CHECK(leads(1, first_gone));
  CHECK_FALSE(leads(2, first_gone));
  const auto first_ended = [](FakeHost& host) {
    host.ranks[0].phase = Phase::kEnded;
  };
  CHECK(leads(1, first_ended));
  CHECK_FALSE(leads(2, first_ended));
  const auto two_silent = [](FakeHost& host) {
    host.ranks[0].heartbeat_s = host.ranks[1].heartbeat_s -=
        Reporter::kLeaderSilence_s + 0.01;
  };
  CHECK(leads(2, two_silent));
  CHECK_FALSE(
      leads(1, [](FakeHost& host) { host.ranks[0].heartbeat_s -= 0.9; }));
}

TEST_CASE("who does not lead is silent, also when it ends") {
  ReporterBed bed(1);
  for (int i = 0; i < 40; ++i) {
    bed.pass(0.05);
    bed.host.ranks[0].heartbeat_s = bed.now;
  }
  bed.reporter.say_goodbye();
  CHECK(bed.channel.reports[0].empty());

  ReporterBed leader(0);
  leader.reporter.say_goodbye();
  CHECK(leader.channel.reports[0].size() == 1);
}

TEST_CASE(
    "an end code of an observer is passed to the host, and then the process "
    "ends") {
  ReporterBed bed;
  bed.channel.answers[1] = {kGoOn, answer_line(kRunTokens.answer, 7), kGoOn};
  bed.reporter.heartbeat(false);
  CHECK(bed.host.end_code == 7);
  CHECK_FALSE(bed.end.exit_code);
  bed.reporter.heartbeat(false);
  CHECK(bed.end.exit_code == 7);
}

TEST_CASE("forged and senseless answers end nothing, and count as none") {
  ReporterBed bed;
  std::vector<std::string> forged = {answer_line(kRunTokens.report, 7),
                                     R"({"end":7})",
                                     R"({"token":"answer-token"})",
                                     R"({"token":"answer-token","end":"x"})",
                                     R"({"token":null,"end":7})",
                                     "[]",
                                     "7",
                                     "\"x\"",
                                     "nonsense",
                                     "",
                                     std::string(100'000, '[')};
  for (int i = 0; i < 130; ++i) {
    bed.channel.answers = {forged, forged};
    bed.pass(0.05);
    if (bed.end.exit_code) break;
    if (i == 0) forged.pop_back();  // of so many brackets once is enough
  }
  // After the timeout, not before: by 5, since nobody who counts has answered.
  CHECK(bed.end.exit_code == 5);
  CHECK(bed.now > 1005);
  CHECK(bed.folder.log.size() == 1);
}

TEST_CASE("one observer that answers is enough; one on the own host, too") {
  ReporterBed one;
  for (int i = 0; i < 10; ++i) {
    one.channel.answers[1] = {kGoOn};
    one.pass(4);
  }
  CHECK_FALSE(one.end.exit_code);
  ReporterBed here(0, true);
  here.pass(100);
  CHECK_FALSE(here.end.exit_code);
  ReporterBed none;
  none.pass(4.9);
  CHECK(none.host.end_code == 0);
  none.pass(0.5);
  CHECK(none.host.end_code == 5);
  CHECK(none.folder.log.size() == 1);
}

TEST_CASE("after a suspension observers get their whole time again") {
  ReporterBed bed;
  bed.channel.answers = {{kGoOn}, {kGoOn}};
  bed.pass(1);
  bed.now += 3600;
  bed.reporter.heartbeat(true);
  bed.pass(4.5);
  CHECK(bed.host.end_code == 0);
  bed.pass(1);
  CHECK(bed.host.end_code == 5);
}

TEST_CASE(
    "an observer that does not answer is tried another way, one that does is "
    "not") {
  ReporterBed bed;
  for (int i = 0; i < 8; ++i) {
    bed.channel.answers[1] = {kGoOn};
    bed.pass(0.5);
  }
  CHECK_FALSE(bed.channel.reconnected.empty());
  for (const size_t observer : bed.channel.reconnected) CHECK(observer == 0);
}
