#include "chexnet/report/timeline.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

using nlohmann::json;

// Each rank sends its spans as arrays [name, row, begin, seconds], with the
// clock offset added, so rank 0 only subtracts the first begin of all. Steady
// clocks of two hosts start anywhere: the offset is the median over some rounds
// of what rank 0's clock showed, at a barrier, less ours.

// Rows of a rank. Buckets travel at the same time, so each has a row of its
// own.
enum Row : int { kMain = 0, kReady = 1, kBuckets = 10 };

json name_of(const char* kind, int process, int track,
             const std::string& name) {
  return {{"ph", "M"},
          {"name", kind},
          {"pid", process},
          {"tid", track},
          {"args", {{"name", name}}}};
}

}  // namespace

size_t timeline_events(int ranks) {
  assert(ranks > 0);
  constexpr size_t kOfOne = 200'000,
                   kOfAll = 8'000'000;  // of about 100 bytes
  return std::min(kOfOne, kOfAll / static_cast<size_t>(ranks));
}

double clock_offset_s(Communicator& comm) {
  constexpr int kRounds = 9;
  std::vector<double> offsets;
  for (int i = 0; i < kRounds; ++i) {
    comm.barrier();
    std::vector<double> now = {comm.rank() == 0 ? now_s() : 0};
    const double mine = now_s();
    comm.all_reduce(now, ReduceOp::kSum);
    offsets.push_back(now[0] - mine);
  }
  return median(std::move(offsets));
}

void write_timeline(Communicator& comm, const Profiler& profiler,
                    double offset_s, const std::filesystem::path& path) {
  json mine = {{"host", host_name()},
               {"dropped", profiler.dropped()},
               {"events", json::array()}};
  for (const auto& e : profiler.timeline())
    mine["events"].push_back(
        {{"name", e.number < 0 ? std::string(e.name)
                               : e.name + (" " + std::to_string(e.number))},
         {"row", e.track == 0 ? int{kMain} : kBuckets + std::max(0, e.number)},
         {"begin_s", e.begin_s + offset_s},
         {"s", e.end_s - e.begin_s}});
  const auto ranks = gather_json(comm, mine);
  if (comm.rank() != 0) return;

  double start = std::numeric_limits<double>::infinity();
  size_t dropped = 0;
  for (const auto& rank : ranks) {
    dropped += rank["dropped"].get<size_t>();
    for (const auto& e : rank["events"])
      start = std::min(start, e["begin_s"].get<double>());
  }
  json events = json::array();
  const std::string waiting = phase_name(Phase::kAllReduceWait);
  for (size_t r = 0; r < ranks.size(); ++r) {
    const int process = static_cast<int>(r);
    events.push_back(name_of("process_name", process, kMain,
                             "rank " + std::to_string(r) + " on " +
                                 ranks[r]["host"].get<std::string>()));
    events.push_back({{"ph", "M"},
                      {"name", "process_sort_index"},
                      {"pid", process},
                      {"tid", 0},
                      {"args", {{"sort_index", process}}}});
    events.push_back(name_of("thread_name", process, kMain, "main thread"));
    std::set<int> buckets;
    for (const auto& e : ranks[r]["events"])
      if (const int row = e["row"]; row >= kBuckets) buckets.insert(row);
    for (const int row : buckets)
      events.push_back(
          name_of("thread_name", process, row,
                  "network: bucket " + std::to_string(row - kBuckets)));
    for (const auto& e : ranks[r]["events"]) {
      const double at_us = 1e6 * (e["begin_s"].get<double>() - start);
      events.push_back({{"ph", "X"},
                        {"name", e["name"]},
                        {"pid", process},
                        {"tid", e["row"]},
                        {"ts", at_us},
                        {"dur", 1e6 * e["s"].get<double>()}});
      if (e["name"] == waiting)
        events.push_back({{"ph", "i"},
                          {"s", "t"},
                          {"name", "rank " + std::to_string(r) + " ready"},
                          {"pid", 0},
                          {"tid", kReady},
                          {"ts", at_us}});
    }
  }
  events.push_back(
      name_of("thread_name", 0, kReady, "ranks ready for the last gradients"));
  write_atomically(path, json_text(json({{"traceEvents", std::move(events)},
                                         {"displayTimeUnit", "ms"}})));
  if (dropped > 0)
    log_info("timeline: " + path.string() + " holds the first spans; " +
             std::to_string(dropped) + " later ones did not fit");
}

}  // namespace chexnet
