#include "chexnet/report/timeline.hpp"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;
using nlohmann::json;

namespace {

// Two ranks, each with two spans on the main thread, a bucket and an image of
// its loader. Rank 1's clock shows 100 s less.
json timeline_of_two_ranks(const std::filesystem::path& path) {
  ThreadWorld(2).run([&](Communicator& comm) {
    Recording recording(4);
    const double start = comm.rank() == 0 ? 1000 : 900;
    recording.add(
        {"forward", -1, Track::kMain, 0, start + comm.rank(), start + 2});
    recording.add({"bucket", 4, Track::kNetwork, 4, start + 2, start + 2.5});
    recording.add({phase_name(Phase::kAllReduceWait), -1, Track::kMain, 0,
                   start + 2 + comm.rank(), start + 4});
    recording.add({"image", -1, Track::kLoader, 1, start + 2, start + 3});
    recording.add({"too many", -1, Track::kMain, 0, start, start});
    write_timeline(comm, recording, comm.rank() == 0 ? 0 : 100, path);
  });
  return json::parse(read_text(path)).at("traceEvents");
}

}  // namespace

TEST_CASE(
    "spans of all ranks stand on one clock that begins with the first of "
    "them") {
  const ScratchFolder folder;
  const json events = timeline_of_two_ranks(folder / "timeline.json");
  std::map<std::pair<int, std::string>, std::pair<double, double>> spans;
  for (const auto& e : events)
    if (e.at("ph") == "X")
      spans[{e.at("pid").get<int>(), e.at("name").get<std::string>()}] = {
          e.at("ts"), e.at("dur")};
  REQUIRE(spans.size() == 8);
  const auto is_at = [&](int rank, const char* name, double ts, double dur) {
    const auto& [begin, length] = spans.at({rank, name});
    CHECK(begin == Approx(ts).margin(1));
    CHECK(length == Approx(dur).margin(1));
  };
  is_at(0, "forward", 0, 2e6);
  is_at(1, "forward", 1e6, 1e6);
  is_at(0, "bucket 4", 2e6, 5e5);
  is_at(1, "bucket 4", 2e6, 5e5);
}

TEST_CASE(
    "each bucket and each thread of the loader has a row, and rank 0 shows "
    "when each rank was ready") {
  const ScratchFolder folder;
  const json events = timeline_of_two_ranks(folder / "timeline.json");
  std::set<std::string> rows, ready;
  for (const auto& e : events) {
    if (e.at("name") == "thread_name" || e.at("name") == "process_name")
      rows.insert(e.at("args").at("name").get<std::string>());
    if (e.at("ph") == "i") {
      CHECK(e.at("pid") == 0);
      ready.insert(e.at("name").get<std::string>());
    }
  }
  CHECK(rows.contains("network: bucket 4"));
  CHECK(rows.contains("loader: worker 1"));
  CHECK(rows.contains("main thread"));
  CHECK(ready == std::set<std::string>{"rank 0 ready", "rank 1 ready"});
}

TEST_CASE("a rank writes by itself what it did until the moment") {
  const ScratchFolder folder;
  Recording recording(10);
  const double now = now_s();
  recording.add({"forward", -1, Track::kMain, 0, now - 3, now - 2});
  PhaseSlot slot;
  slot.phase = static_cast<uint32_t>(Phase::kAllReduceWait);
  slot.since_s = now - 2;
  write_own_timeline(5, recording, &slot, folder / "t.json");
  const json events =
      json::parse(read_text(folder / "t.json")).at("traceEvents");
  std::map<std::string, json> spans;
  for (const auto& e : events) {
    CHECK(e.at("pid") == 5);
    if (e.at("ph") == "X") spans[e.at("name")] = e;
  }
  REQUIRE(spans.size() == 2);
  CHECK(spans.at("forward").at("ts") == Approx(0).margin(1));
  // Without the span that has not ended, nobody would see where it hangs.
  const json& open = spans.at(phase_name(Phase::kAllReduceWait));
  CHECK(open.at("ts") == Approx(1e6).margin(1));
  CHECK(open.at("dur").get<double>() >= 2e6 - 1);
}

TEST_CASE("ranks of one host find that their clocks agree") {
  ThreadWorld(3).run([](Communicator& comm) {
    const double offset = clock_offset_s(comm);
    if (std::abs(offset) > 1)
      throw DeviceError("clocks differ by " + std::to_string(offset));
  });
}

TEST_CASE(
    "the spans of all ranks fit into one gather, however many ranks there "
    "are") {
  for (const int ranks : {1, 2, 40, 107, 1000, 10000}) {
    const size_t events = timeline_events(ranks);
    CHECK(events > 0);
    CHECK(events <= 200'000);
    CHECK(events * static_cast<size_t>(ranks) * 200 < size_t{1} << 31);
  }
}
