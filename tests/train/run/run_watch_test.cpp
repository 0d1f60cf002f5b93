#include "chexnet/train/run/run_watch.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chexnet/core/read_file.hpp"
#include "report/metric_lines.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

constexpr int kWindow = 10;  // steps between two exchanges of the ranks

const std::vector<PlacementRow>& two_hosts() {
  static const std::vector<PlacementRow> rows = [] {
    std::vector<PlacementRow> made(2);
    made[0].host = "north";
    made[1].rank = 1;
    made[1].host = "south";
    made[1].gpu = "V100";
    return made;
  }();
  return rows;
}

// Work of so many seconds, as a device's clock books it: nobody's pace depends
// on the machine of the test. They come from a phase that the watch leaves out.
void work(Profiler& profiler, Phase phase, double seconds) {
  profiler.rebook(Phase::kCheckpoint, phase, seconds);
}

std::vector<nlohmann::json> events(const ScratchFolder& folder,
                                   const std::string& kind) {
  std::vector<nlohmann::json> found;
  for_each_event(read_text(folder / "metrics.jsonl"),
                 [&](const nlohmann::json& event, const std::string&) {
                   if (event["event"] == kind) found.push_back(event);
                 });
  return found;
}

// `windows` of steps on two ranks; `step` does a rank's work in its profiler,
// or outside of it. Returns the summaries of the ranks.
using Step = std::function<void(int rank, Profiler& profiler, RunWatch& watch)>;
std::vector<std::string> watch_two_ranks(const ScratchFolder& folder,
                                         int windows, const Step& step) {
  MetricsLog metrics(folder.path(), {});
  return rank_results(2, [&](Communicator& comm) {
    Profiler profiler;
    RunWatch watch(comm, profiler, comm.rank() == 0 ? &metrics : nullptr,
                   {.placements = two_hosts(), .gpu_uuid = "", .threads = 1});
    for (int s = 1; s <= windows * kWindow; ++s) {
      step(comm.rank(), profiler, watch);
      watch.step_done(s, 0);
    }
    return watch.summary(windows * kWindow);
  });
}

}  // namespace

TEST_CASE(
    "a rank that computes longer than the others is named once, with its "
    "host") {
  const ScratchFolder folder;
  watch_two_ranks(folder, 5, [](int rank, Profiler& profiler, RunWatch&) {
    work(profiler, Phase::kForward, rank == 1 ? 1200 : 100);
  });
  const auto stragglers = events(folder, "straggler");
  REQUIRE(stragglers.size() == 1);
  CHECK(stragglers[0]["rank"] == 1);
  CHECK(stragglers[0]["host"] == "south");
  CHECK(stragglers[0]["ratio"].get<double>() > 1.35);
}

TEST_CASE("a rank that waits for others is no straggler") {
  const ScratchFolder folder;
  watch_two_ranks(folder, 5, [](int rank, Profiler& profiler, RunWatch&) {
    work(profiler, Phase::kForward, 100);
    if (rank == 1) work(profiler, Phase::kAllReduceWait, 600);
    if (rank == 1) work(profiler, Phase::kControl, 600);
  });
  CHECK(events(folder, "straggler").empty());
}

TEST_CASE("a GPU's own time is what its clock says, not where its host stood") {
  const ScratchFolder folder;
  watch_two_ranks(folder, 5, [](int rank, Profiler& profiler, RunWatch&) {
    work(profiler, Phase::kBackward, rank == 1 ? 1200 : 100);
    // Its host came late to a wait that the GPU was in all the time.
    if (rank == 1)
      profiler.rebook(Phase::kBackward, Phase::kAllReduceWait, 1100);
  });
  CHECK(events(folder, "straggler").empty());
}

TEST_CASE("what lies between two steps and is skipped is nobody's pace") {
  const ScratchFolder folder;
  watch_two_ranks(folder, 5, [](int rank, Profiler& profiler, RunWatch& watch) {
    if (rank == 1) work(profiler, Phase::kOther, 1200);
    watch.skip();
    work(profiler, Phase::kForward, 100);
  });
  CHECK(events(folder, "straggler").empty());
}

TEST_CASE("the first exchange writes what is known of every rank") {
  const ScratchFolder folder;
  watch_two_ranks(folder, 1, [](int, Profiler& profiler, RunWatch&) {
    work(profiler, Phase::kForward, 100);
  });
  const auto system = events(folder, "system");
  REQUIRE(system.size() == 1);
  CHECK(system[0]["step"] == kWindow);
  CHECK(system[0]["own_ms_per_step"].size() == 2);
  CHECK(system[0]["rss_bytes"]["1"].get<double>() > 0);
  CHECK_FALSE(system[0].contains("gpu_utilization"));  // nobody has one
}

TEST_CASE("the table of ranks is drawn on rank 0 with every rank's host") {
  const ScratchFolder folder;
  const auto summaries =
      watch_two_ranks(folder, 1, [](int rank, Profiler& profiler, RunWatch&) {
        work(profiler, Phase::kForward, 100);
        if (rank == 1) work(profiler, Phase::kDataWait, 200);
      });
  CHECK(summaries[0].find("north") != std::string::npos);
  CHECK(summaries[0].find("south") != std::string::npos);
  CHECK(summaries[1].empty());
  const auto ranks = events(folder, "ranks");
  REQUIRE(ranks.size() == 1);
  CHECK(ranks[0]["own_ms_per_step"].size() == 2);
}

TEST_CASE("the mean under the table of ranks is of steps alone") {
  const ScratchFolder folder;
  const auto summaries = watch_two_ranks(
      folder, 1, [](int rank, Profiler& profiler, RunWatch& watch) {
        work(profiler, Phase::kAllReduceWait, 900);  // of an evaluation
        watch.skip();
        work(profiler, Phase::kForward, rank == 0 ? 100 : 300);
        work(profiler, Phase::kAllReduceWait, rank == 0 ? 200 : 0);
      });
  // Of 200 s and 100 s, to which the test's time is added.
  CHECK(summaries[0].find("(66.7 %)") != std::string::npos);
  CHECK(summaries[0].find("(33.3 %)") != std::string::npos);
}
