#include "comm/watch/observer.hpp"

#include <functional>
#include <utility>

#include "chexnet/launch/timeouts.hpp"
#include "fake_parts.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

// Gives the lines that the test has put there; keeps the answers.
class ScriptedInbox final : public ReportInbox {
 public:
  void take(double, const Use& use) override {
    for (const auto& line : std::exchange(lines, {}))
      answers.push_back(use(line));
  }
  void tell_all(const std::string& line) override { told.push_back(line); }

  std::vector<std::string> lines, answers, told;
};

// Ranks 0 and 1 on host "a", 2 and 3 on "b"; the observer is one of a's, or
// rank 2 as the only rank here that its host's memory shows.
struct ObserverBed {
  explicit ObserverBed(int observer = 0)
      : ranks(host, 0, now),
        end(folder, observer, now),
        part({.rank = observer,
              .observers = {0, observer == 0 ? 2 : observer},
              .timeouts = {5.3, 5},
              .answer_token = kRunTokens.answer},
             named(), ranks, &inbox, end, [this] { return now; }) {
    for (int rank : {2, 3}) {
      RankView& view = others.emplace_back();
      view.rank = rank;
      view.pid = 100 + rank;
      view.phase = Phase::kBackward;
      view.sequence = 812;
      view.step = 40;
    }
  }
  static FakeHost two_ranks() {
    FakeHost host{.name = "a", .ranks = {}};
    for (int rank : {0, 1}) host.ranks.emplace_back().rank = rank;
    for (auto& rank : host.ranks) rank.heartbeat_s = rank.since_s = 1000;
    return host;
  }
  static std::vector<RankView> named() {
    std::vector<RankView> views(4);
    for (int r = 0; r < 4; ++r) {
      views[static_cast<size_t>(r)].rank = r;
      views[static_cast<size_t>(r)].host = r < 2 ? "a" : "b";
    }
    return views;
  }
  // Looks 20 times a second; ranks of this host are alive, the other host
  // reports when the test wants it.
  void pass(double seconds, bool reports = true) {
    for (const double until = now + seconds; now < until;) {
      now += 0.05;
      for (auto& rank : host.ranks) rank.heartbeat_s = now;
      if (reports) inbox.lines.push_back(report_line(others));
      part.look(false);
    }
  }

  double now = 1000;
  FakeHost host = two_ranks();
  FakeHostRanks ranks;
  ScriptedInbox inbox;
  FakeRunFolder folder;
  FakeEnd end;
  std::vector<RankView> others;  // as the other host reports them
  Observer part;
};

}  // namespace

TEST_CASE("a report is answered, and what is no report changes nothing") {
  ObserverBed bed;
  bed.pass(0.05);
  CHECK(bed.inbox.answers ==
        std::vector<std::string>{answer_line(kRunTokens.answer, 0)});
  const std::vector<std::string> bad = {
      "", "7", "[]", "{}", R"({"ranks":7})", R"({"ranks":[7]})",
      R"({"ranks":[{"rank":2}]})",
      // Of a rank that the run does not have; with a death that is then not
      // believed.
      R"({"ranks":[{"rank":3,"pid":1,"phase":4,"gone":true,"stopped":false,"heartbeat_s":0,"phase_s":0,"sequence":1,"step":1},{"rank":4,"pid":1,"phase":4,"gone":false,"stopped":false,"heartbeat_s":0,"phase_s":0,"sequence":1,"step":1}]})",
      R"({"ranks":[{"rank":-1,"pid":1,"phase":4,"gone":true,"stopped":false,"heartbeat_s":0,"phase_s":0,"sequence":1,"step":1}]})",
      R"({"ranks":[{"rank":3,"pid":1,"phase":99,"gone":true,"stopped":false,"heartbeat_s":0,"phase_s":0,"sequence":1,"step":1}]})",
      R"({"ranks":[[3,1,4,true,0,0,1,1]]})",
      "{\"ranks\":[" + std::string(50'000, '[')};
  bed.inbox.answers.clear();
  bed.inbox.lines = bad;
  bed.pass(0.05);
  REQUIRE(bed.inbox.answers.size() == bad.size() + 1);
  for (size_t i = 0; i < bad.size(); ++i) CHECK(bed.inbox.answers[i].empty());
  CHECK(bed.folder.sentences.empty());
}

TEST_CASE("a failure is announced once, to the host and to all who report") {
  ObserverBed bed;
  bed.pass(1);
  bed.others[1].gone = true;
  bed.pass(1);
  CHECK(bed.folder.sentences.size() == 1);
  CHECK(bed.inbox.told ==
        std::vector<std::string>{answer_line(kRunTokens.answer, 5)});
  CHECK(bed.host.end_code == 5);
  CHECK(bed.end.limited == 5);
  CHECK_FALSE(bed.end.exit_code);  // which its reporter does
}

TEST_CASE("what somebody has explained is told on, and not explained again") {
  ObserverBed bed;
  bed.folder.sentences = {"by the other observer"};
  bed.others[1].gone = true;
  bed.pass(1);
  CHECK(bed.folder.sentences.size() == 1);
  CHECK(bed.inbox.told.size() == 1);
  CHECK(bed.host.end_code == 5);
}

TEST_CASE(
    "a run folder that cannot be written does not keep a run from ending") {
  ObserverBed bed;
  bed.folder.broken = true;
  bed.others[1].gone = true;
  bed.pass(1);
  CHECK(bed.folder.log == std::vector<std::string>{"[files] no space left"});
  CHECK(bed.inbox.told.size() == 1);
  CHECK(bed.host.end_code == 5);
}

TEST_CASE("the second observer speaks only after the first had its time") {
  const auto seconds = [](int observer,
                          const std::function<void(ObserverBed&)>& fail) {
    ObserverBed bed(observer);
    bed.pass(1);
    fail(bed);
    const double start = bed.now;
    while (bed.folder.sentences.empty() && bed.now < start + 30) bed.pass(0.05);
    return bed.now - start;
  };
  const auto rank3_dies = [](ObserverBed& bed) { bed.others[1].gone = true; };
  const auto rank0_dies = [](ObserverBed& bed) {
    bed.host.ranks[0].gone = true;
  };
  CHECK(seconds(0, rank3_dies) < 0.1);
  CHECK(seconds(1, rank3_dies) > kSecondObserverAfter_s - 0.01);
  CHECK(seconds(1, rank3_dies) < kSecondObserverAfter_s + 0.15);
  // The first one will not speak any more.
  CHECK(seconds(1, rank0_dies) < 0.1);
}

TEST_CASE("a suspicion that passes is forgotten") {
  ObserverBed bed(1);
  bed.pass(1);
  for (int i = 0; i < 5; ++i) {
    bed.others[1].heartbeat_age_s = 6;
    bed.pass(kSecondObserverAfter_s - 0.1);
    bed.others[1].heartbeat_age_s = 0;
    bed.pass(0.2);
  }
  CHECK(bed.folder.sentences.empty());
}

TEST_CASE("a silent host is named as silent, not its ranks as stopped") {
  ObserverBed bed;
  bed.pass(1);
  bed.pass(4.9, false);
  CHECK(bed.folder.causes.empty());
  bed.pass(0.3, false);
  CHECK(bed.folder.causes == std::vector<std::string>{"cut off"});
}

TEST_CASE("what a host last said of its ranks grows older while it is silent") {
  ObserverBed bed;
  for (auto& view : bed.others) view.phase = Phase::kAllReduceWait;
  for (auto& rank : bed.host.ranks) rank.phase = Phase::kAllReduceWait;
  // Its host said so, and then nothing for a while.
  bed.others[1].phase_age_s = 5.2;
  bed.pass(0.05);
  CHECK(bed.folder.causes.empty());
  bed.pass(0.3, false);
  CHECK(bed.folder.causes == std::vector<std::string>{"network"});
}

TEST_CASE(
    "an endless stream of one host's reports hides no failure of another") {
  ObserverBed bed;
  const std::string line = report_line({bed.others[0]});  // never of rank 3
  bed.pass(1);
  for (int i = 0; i < 200 && bed.folder.causes.empty(); ++i) {
    bed.inbox.lines.assign(100, line);
    bed.pass(0.05, false);
  }
  CHECK(bed.folder.causes == std::vector<std::string>{"cut off"});
  CHECK(bed.folder.sentences[0].find("(rank 3)") != std::string::npos);
}

TEST_CASE("after a suspension nobody is suspected before everybody had time") {
  ObserverBed bed;
  bed.pass(1);
  bed.now += 3600;
  bed.part.look(true);
  bed.pass(4.8, false);
  CHECK(bed.folder.causes.empty());
  bed.pass(1, false);
  CHECK(bed.folder.causes == std::vector<std::string>{"cut off"});
}

TEST_CASE("while the launcher ends the job a second of silence is enough") {
  ObserverBed bed;
  bed.pass(1);
  bed.others[1].heartbeat_age_s = 1.2;
  bed.pass(1);
  CHECK(bed.folder.causes.empty());
  bed.end.launcher_ends = true;
  bed.pass(0.1);
  CHECK(bed.folder.causes == std::vector<std::string>{"stopped"});
}
