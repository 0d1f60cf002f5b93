#include "chexnet/train/run/timeline_recorder.hpp"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

// Steps of a loop, each with a span of its number.
class Loop {
 public:
  Loop(Communicator& comm, TimelineRecorder::Request request,
       const fs::path& folder)
      : comm_(comm), recorder_(comm, profiler_, std::move(request), folder) {}

  void steps(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      recorder_.begin_step(step, times_);
      std::vector<double> votes = {recorder_.asked() ? 1.0 : 0.0};
      comm_.all_reduce(votes, ReduceOp::kSum);
      if (votes[0] > 0) recorder_.take_request(step);
      profiler_.add({"step", static_cast<int32_t>(step), Track::kMain, 0,
                     now_s(), now_s()});
      times_ = {times_.loading_s + 0.03, times_.exposed_s + 0.003,
                times_.data_wait_s + 0.003, times_.all_s + 0.1,
                times_.steps + 1};
      recorder_.end_step(step, times_);
    }
  }
  void finish() { recorder_.finish(); }

 private:
  Communicator& comm_;
  Profiler profiler_;
  TimelineRecorder recorder_;
  StepTimes times_;
};

// Of each rank by its number, the names of its spans.
std::map<int, std::set<std::string>> spans_in(const fs::path& file) {
  std::map<int, std::set<std::string>> spans;
  if (!fs::exists(file)) return spans;
  const auto trace = nlohmann::json::parse(read_text(file));
  for (const auto& e : trace["traceEvents"])
    if (e["ph"] == "X") spans[e["pid"]].insert(e["name"]);
  return spans;
}

std::set<std::string> steps_from_to(int first, int last) {
  std::set<std::string> names;
  for (int step = first; step <= last; ++step)
    names.insert("step " + std::to_string(step));
  return names;
}

}  // namespace

TEST_CASE("--steps is two numbers from 1 on, in order") {
  const StepWindow window = step_window("200:220");
  CHECK((window.first == 200 && window.last == 220));
  CHECK(step_window("7:7").last == 7);
  for (const char* wrong :
       {"", ":", "5", "5:", ":5", "0:5", "-1:5", "6:5", "1:2:3", "1-5", "a:b",
        "1: 5", "1:99999999999999999999"}) {
    INFO(wrong);
    CHECK(error_of<ConfigError>([&] {
            step_window(wrong);
          }).find("is no FIRST:LAST. Hint: --steps 200:220") !=
          std::string::npos);
  }
}

TEST_CASE("given steps alone are recorded, and written after the last") {
  const ScratchFolder folder;
  const fs::path file = folder / "t.json";
  ThreadWorld(2).run([&](Communicator& comm) {
    Loop loop(comm, {file, StepWindow{3, 5}}, folder.path());
    loop.steps(1, 4);
    comm.barrier();
    if (fs::exists(file)) throw DeviceError("written too early");
    loop.steps(5, 8);
    loop.finish();
  });
  const auto spans = spans_in(file);
  REQUIRE(spans.size() == 2);
  for (const auto& [rank, names] : spans) CHECK(names == steps_from_to(3, 5));
}

TEST_CASE("steps of which a resume makes the last ones, and none") {
  const ScratchFolder folder;
  ThreadWorld(1).run([&](Communicator& comm) {
    Loop loop(comm, {folder / "t.json", StepWindow{3, 5}}, folder.path());
    loop.steps(5, 8);
    Loop later(comm, {folder / "none.json", StepWindow{3, 5}}, folder.path());
    later.steps(6, 8);
    later.finish();
    // The run's end comes first.
    Loop cut(comm, {folder / "cut.json", StepWindow{3, 50}}, folder.path());
    cut.steps(1, 4);
    cut.finish();
  });
  CHECK(spans_in(folder / "t.json").at(0) == steps_from_to(5, 5));
  CHECK_FALSE(fs::exists(folder / "none.json"));
  CHECK(spans_in(folder / "cut.json").at(0) == steps_from_to(3, 4));
}

TEST_CASE("a file TIMELINE does not take the place of given steps") {
  const ScratchFolder folder;
  ThreadWorld(1).run([&](Communicator& comm) {
    Loop loop(comm, {folder / "t.json", StepWindow{30, 35}}, folder.path());
    loop.steps(1, 20);
    folder.write("TIMELINE", "");
    loop.steps(21, 40);
    loop.finish();
  });
  CHECK(spans_in(folder / "t.json").at(0) == steps_from_to(30, 35));
  CHECK_FALSE(fs::exists(folder / "timeline.json"));
  CHECK_FALSE(fs::exists(folder / "TIMELINE"));
}

TEST_CASE("a file TIMELINE has the next 20 steps of all ranks recorded") {
  const ScratchFolder folder;
  const fs::path request = folder / "TIMELINE", file = folder / "timeline.json";
  const auto touched = [&](Communicator& comm) {
    comm.barrier();  // or a rank may still be at the step before
    if (comm.rank() == 0) folder.write("TIMELINE", "");
    comm.barrier();
  };
  ThreadWorld(2).run([&](Communicator& comm) {
    Loop loop(comm, {}, folder.path());
    loop.steps(1, 9);
    touched(comm);
    loop.steps(10, 40);
    if (comm.rank() == 0 && fs::exists(request))
      throw DeviceError("the request stays");
    comm.barrier();
    const auto spans = spans_in(file);
    comm.barrier();
    if (spans.size() != 2 || spans.at(1) != steps_from_to(11, 30))
      throw DeviceError("other steps than 11 to 30");
    touched(comm);  // again
    loop.steps(41, 50);
    loop.finish();
  });
  CHECK(spans_in(file).at(0) == steps_from_to(42, 50));
}

TEST_CASE("a request during a recording is taken away, and changes nothing") {
  const ScratchFolder folder;
  folder.write("TIMELINE", "");
  ThreadWorld(1).run([&](Communicator& comm) {
    Loop loop(comm, {folder / "whole.json", {}}, folder.path());
    loop.steps(1, 30);
    loop.finish();
  });
  CHECK_FALSE(fs::exists(folder / "TIMELINE"));
  CHECK_FALSE(fs::exists(folder / "timeline.json"));
  CHECK(spans_in(folder / "whole.json").at(0) == steps_from_to(1, 30));
}

TEST_CASE("a timeline that cannot be written ends no training") {
  const ScratchFolder folder;
  folder.write("TIMELINE", "");
  ThreadWorld(1).run([&](Communicator& comm) {
    Loop loop(comm, {folder / "absent/t.json", StepWindow{1, 3}},
              folder.path());
    loop.steps(1, 40);
    loop.finish();
  });
  SUCCEED("went on");
}
