#include "comm/watch/messages.hpp"

#include "comm/watch/line_socket.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a report says of each rank what its host's memory says") {
  RankView said;
  said.rank = 1;
  said.pid = 4711;
  said.gone = said.stopped = true;
  said.phase = Phase::kEvaluate;
  said.heartbeat_age_s = 0.0421;
  said.phase_age_s = 12.3456;
  said.sequence = 812'000'000'000;
  said.step = 40'000'000'000;
  std::vector<RankView> views(2);
  views[0].rank = 0;
  views[1].rank = 1;
  views[1].host = "node2";
  views[1].gpu = "Tesla V100";
  REQUIRE(read_report(report_line({said}), views) == std::vector<int>{1});
  CHECK(views[1].pid == 4711);
  CHECK(views[1].gone);
  CHECK(views[1].stopped);
  CHECK_FALSE(views[1].ended);
  CHECK(views[1].phase == Phase::kEvaluate);
  CHECK(views[1].heartbeat_age_s == Approx(0.042));
  CHECK(views[1].phase_age_s == Approx(12.346));
  CHECK(views[1].sequence == said.sequence);
  CHECK(views[1].step == said.step);
  CHECK(views[1].host == "node2");
  CHECK(views[1].gpu == "Tesla V100");
  CHECK(views[0].pid == 0);

  said.phase = Phase::kEnded;
  REQUIRE(read_report(report_line({said}), views));
  CHECK(views[1].ended);
  CHECK(read_report(report_line({}), views) == std::vector<int>{});
}

TEST_CASE("what is no report leaves all as it was") {
  std::vector<RankView> views(2);
  views[1].rank = 1;
  views[1].step = 7;
  const std::string good = report_line({views[1]});
  REQUIRE(read_report(good, views));
  for (const char* field : {"rank", "pid", "phase", "gone", "heartbeat_s",
                            "phase_s", "sequence", "step"}) {
    CAPTURE(field);
    std::string line = good;
    line.replace(line.find(std::string("\"") + field), 2, "\"x");
    CHECK_FALSE(read_report(line, views));
  }
  for (const char* field : {"rank", "pid", "phase", "sequence", "step"}) {
    for (const char* number : {"1e300", "1.5", "-99999999999999999999"}) {
      std::string line = good;
      const auto at = line.find(std::string("\"") + field + "\":") +
                      std::string(field).size() + 3;
      line.replace(at, line.find_first_of(",}", at) - at, number);
      CAPTURE(line);
      CHECK_FALSE(read_report(line, views));
    }
  }
  std::string below = good;
  below.replace(below.find("\"phase\":"), 9, "\"phase\":-");
  CHECK_FALSE(read_report(below, views));
  for (size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(read_report(good.substr(0, length), views));
  CHECK(views[1].step == 7);
}

TEST_CASE("a rank that ended stays so when an older report comes behind") {
  std::vector<RankView> views(1);
  RankView said = views[0];
  said.step = 40;
  const std::string older = report_line({said});
  said.phase = Phase::kEnded;
  said.step = 41;
  REQUIRE(read_report(report_line({said}), views));
  REQUIRE(read_report(older, views) == std::vector<int>{0});
  CHECK(views[0].ended);
  CHECK(views[0].step == 41);
}

TEST_CASE("a report of 500 ranks of a host fits a line") {
  std::vector<RankView> ranks(500);
  for (auto& view : ranks) {
    view.rank = 9'999;
    view.pid = 4'194'303;
    view.heartbeat_age_s = 1.0 / 3;
    view.phase_age_s = 599 + 1.0 / 3;
    view.sequence = 1'234'567;
    view.step = 1'234'567;
  }
  CHECK(report_line(ranks).size() <= LineSocket::kLongestLine);
}

TEST_CASE("an answer is believed with the run's token alone") {
  CHECK(read_answer(answer_line("t", 7), "t") == 7);
  CHECK(read_answer(answer_line("t", 0), "t") == 0);
  CHECK_FALSE(read_answer(answer_line("t", 7), "u"));
  CHECK_FALSE(read_answer(answer_line("t", 7), ""));
  CHECK_FALSE(read_answer(R"({"token":"t"})", "t"));
  CHECK_FALSE(read_answer(R"({"token":"t","end":1e99})", "t"));
  CHECK_FALSE(read_answer(R"({"token":"t","end":4294967303})", "t"));
  CHECK_FALSE(read_answer("{", "t"));
}
