#include "chexnet/launch/restart_loop.hpp"

#include <map>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

// One start of the ranks, as the fake ranks and folder of a loop show it.
struct End {
  int code = 0;
  std::string checkpoint = "step-1";
  int note = 0;  // code of a post-mortem that a rank wrote; 0: none
  bool in_time = true;
  bool signal = false;     // a stop is requested while the ranks run
  bool has_begun = true;   // they took the folder
  bool is_other = false;   // another run has taken it since
  bool stop_file = false;  // appears while nothing runs
  bool launcher_hung = false;
  std::optional<int> recorded = {};  // how the ranks say that they ended
};

// Ranks and folder without processes: ends come from a table, and `story`
// records what the loop does.
class TableOfEnds : public RankStarts, public RunRecords {
 public:
  explicit TableOfEnds(std::vector<End> ends) : ends_(std::move(ends)) {}

  std::string story;
  bool exists = true;
  int hosts_until = 100;  // restarts for which enough hosts answer

  RankEnd run() override {
    REQUIRE(starts_ < ends_.size());
    ++starts_;
    tell("start");
    asked_ = asked_ || now().signal;
    return {now().code, now().in_time, now().launcher_hung};
  }
  std::string end_text(int code) const override {
    return "code " + std::to_string(code);
  }
  bool asked_to_stop() const override { return asked_; }
  bool stop_within(double seconds) override {
    if (seconds > 0) tell("wait " + std::to_string(static_cast<int>(seconds)));
    return asked_;
  }
  bool on_several_hosts() const override { return false; }
  bool prepare(int restart, bool resumes) override {
    tell("prepare " + std::to_string(restart) + (resumes ? " resume" : ""));
    return restart <= hosts_until;
  }

  bool exist() const override { return exists; }
  bool are_ours() const override { return exists && !now().is_other; }
  void refuse() const override { throw CheckpointError("another run"); }
  Mark begun() const override {
    if (!are_ours() || !now().has_begun) return std::nullopt;
    return std::pair<uint64_t, int64_t>(1, 0);
  }
  std::string checkpoint() const override { return now().checkpoint; }
  int64_t batch() const override { return 0; }
  void put_aside() override {}
  std::optional<EndNote> postmortem() const override {
    if (now().note == 0) return std::nullopt;
    return EndNote{"a rank said why", now().note};
  }
  std::optional<int> end_code() const override { return now().recorded; }
  EndNote explain(const std::string& what) override {
    tell("explain " + what);
    return {what, static_cast<int>(ExitCode::kDevice)};
  }
  void explain_late_start(const std::string&, const std::string&) override {}
  void explain_stop() override { tell("explain stop"); }
  void record_stop(const std::string&) override { tell("record stop"); }
  void tell_monitors() override {}
  bool stop_is_requested() const override { return now().stop_file; }
  void remove_old_stop_file() override { tell("remove STOP"); }

 private:
  const End& now() const { return ends_[starts_ - 1]; }
  void tell(const std::string& what) {
    story += (story.empty() ? "" : ", ") + what;
  }

  std::vector<End> ends_;
  size_t starts_ = 0;
  bool asked_ = false;
};

struct Case {
  const char* what;
  int restarts;
  std::vector<End> ends;
  int code;
  std::string story;
};

const std::string kAgain = ", remove STOP, prepare ";

void check(const Case& c, TableOfEnds world) {
  INFO(c.what);
  RestartLoop loop(c.restarts, world, world);
  CHECK(loop.run() == c.code);
  CHECK(world.story == c.story);
}

}  // namespace

TEST_CASE("ranks are started again where that may help") {
  for (const Case& c : std::vector<Case>{
           {"done", 3, {{0}}, 0, "start"},
           {"a wrong config stays wrong", 3, {{2}}, 2, "start"},
           {"so do wrong data", 3, {{3}}, 3, "start"},
           {"a checkpoint that cannot be written", 3, {{4}}, 4, "start"},
           {"numbers that are not finite", 3, {{6}}, 6, "start"},
           {"a stop with a checkpoint", 3, {{75}}, 75, "start"},
           {"a device", 3, {{5}, {0}}, 0, "start" + kAgain + "1 resume, start"},
           {"a hang", 3, {{7}, {0}}, 0, "start" + kAgain + "1 resume, start"},
           {"an outage: later",
            3,
            {{9}, {0}},
            0,
            "start, wait 60" + kAgain + "1 resume, start"},
           {"a signal that nobody explained",
            3,
            {{137}, {0}},
            0,
            "start, explain code 137, wait 4" + kAgain + "1 resume, start"},
           {"a signal that a rank explained",
            3,
            {{137, "step-1", 7}, {0}},
            0,
            "start, wait 4" + kAgain + "1 resume, start"},
           {"no folder was taken",
            3,
            {{.code = 5, .has_begun = false}, {0}},
            0,
            "start" + kAgain + "1, start"}})
    check(c, TableOfEnds(c.ends));
}

TEST_CASE("a run that gets no further is not started for ever") {
  for (const Case& c : std::vector<Case>{
           {"none asked for", 0, {{5}}, 5, "start"},
           {"the code is the post-mortem's", 0, {{137, "", 7}}, 7, "start"},
           {"none left",
            1,
            {{5}, {7}},
            7,
            "start" + kAgain + "1 resume, start"},
           {"two restarts at one checkpoint",
            5,
            {{7}, {7}, {7}},
            7,
            "start" + kAgain + "1 resume, start" + kAgain + "2 resume, start"},
           {"progress in between",
            5,
            {{7, "a"}, {7, "a"}, {7, "b"}, {7, "b"}, {7, "b"}},
            7,
            "start" + kAgain + "1 resume, start" + kAgain + "2 resume, start" +
                kAgain + "3 resume, start" + kAgain + "4 resume, start"}})
    check(c, TableOfEnds(c.ends));
}

TEST_CASE("a stop that is asked for is followed by no start") {
  for (const Case& c :
       std::vector<Case>{{"ranks that a signal ended",
                          3,
                          {{.code = 143, .signal = true}},
                          75,
                          "start, explain stop"},
                         {"mpirun's own code",
                          3,
                          {{.code = 1, .signal = true}},
                          75,
                          "start, explain stop"},
                         {"mpirun's own code, and the ranks "
                          "wrote that they stopped",
                          3,
                          {{.code = 1, .signal = true, .recorded = 75}},
                          75,
                          "start, explain stop"},
                         {"ranks that others took for lost",
                          3,
                          {{.code = 5, .note = 5, .signal = true}},
                          75,
                          "start, explain stop"},
                         {"a rank that failed meanwhile",
                          3,
                          {{.code = 7, .signal = true}},
                          7,
                          "start"},
                         {"a STOP file between two starts",
                          3,
                          {{.code = 5, .stop_file = true}},
                          75,
                          "start, record stop"}})
    check(c, TableOfEnds(c.ends));
}

TEST_CASE("where the launcher hung, the run's records have the code") {
  const auto end = [](std::optional<int> recorded) {
    return End{.code = 137, .launcher_hung = true, .recorded = recorded};
  };
  for (const Case& c :
       std::vector<Case>{{"finished", 3, {end(0)}, 0, "start"},
                         {"stopped", 3, {end(75)}, 75, "start"},
                         {"failed by its data", 3, {end(3)}, 3, "start"},
                         {"nobody knows", 0, {end({})}, 7, "start"},
                         {"nobody knows, and a restart is left",
                          1,
                          {end({}), {0}},
                          0,
                          "start" + kAgain + "1 resume, start"}})
    check(c, TableOfEnds(c.ends));
}

TEST_CASE("a hang after the run's end is none") {
  for (const Case& c : std::vector<Case>{
           {"finished", 3, {{.code = 7, .recorded = 0}}, 0, "start"},
           {"stopped", 3, {{.code = 7, .recorded = 75}}, 75, "start"},
           {"a rank said why",
            0,
            {{.code = 7, .note = 7, .recorded = 0}},
            7,
            "start"}})
    check(c, TableOfEnds(c.ends));
}

TEST_CASE("where mpirun was killed, the run's records have the code") {
  for (const Case& c : std::vector<Case>{
           {"failed by its data",
            3,
            {{.code = 137, .recorded = 3}},
            3,
            "start"},
           {"nobody knows", 0, {{.code = 137}}, 5, "start, explain code 137"}})
    check(c, TableOfEnds(c.ends));
}

TEST_CASE("ranks that did not start in time say so once") {
  check({"nobody could write why",
         3,
         {{.code = 137, .in_time = false}},
         7,
         "start"},
        TableOfEnds(std::vector<End>{{.code = 137, .in_time = false}}));
  const std::vector<End> ends = {{.code = 137, .note = 7, .in_time = false},
                                 {}};
  check({"the records do", 3, ends, 0,
         "start, wait 4" + kAgain + "1 resume, start"},
        TableOfEnds(ends));
}

TEST_CASE("too few hosts end a run with the code of its failure") {
  TableOfEnds world(std::vector<End>{{5}, {5, "step-2"}});
  world.hosts_until = 1;
  RestartLoop loop(3, world, world);
  CHECK(loop.run() == 5);
  CHECK(world.story ==
        "start" + kAgain + "1 resume, start" + kAgain + "2 resume");
}

TEST_CASE("without a run folder no end is followed by a start") {
  for (const auto& [code, told] :
       std::map<int, int>{{137, 5}, {7, 7}, {0, 0}}) {
    TableOfEnds world(std::vector<End>{{code}});
    world.exists = false;
    RestartLoop loop(3, world, world);
    CHECK(loop.run() == told);
    CHECK(world.story == "start");
  }
}

TEST_CASE("another run in the folder is not gone on with") {
  TableOfEnds world(std::vector<End>{{.code = 5, .is_other = true}});
  RestartLoop loop(3, world, world);
  CHECK_THROWS_AS(loop.run(), CheckpointError);
  CHECK(world.story == "start");
}
