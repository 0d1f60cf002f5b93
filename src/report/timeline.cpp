#include "chexnet/report/timeline.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/json_text.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

using nlohmann::json;

// Rows of a rank. Buckets travel at the same time, so each has a row of its own.
enum Row : int { kMain = 0, kReady = 1, kBuckets = 10 };

json name_of(const char* kind, int process, int track, const std::string& name) {
  return {
      {"ph", "M"}, {"name", kind}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

}  // namespace

std::size_t timeline_events(int ranks) {
  constexpr std::size_t kOfOne = 200'000, kOfAll = 8'000'000;  // of about 100 bytes
  return std::min(kOfOne, kOfAll / static_cast<std::size_t>(ranks));
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

void write_timeline(Communicator& comm, const Profiler& profiler, double offset_s,
                    const std::filesystem::path& path) {
  json mine = {{"host", host_name()}, {"dropped", profiler.dropped()}, {"events", json::array()}};
  for (const auto& e : profiler.timeline())
    mine["events"].push_back(
        {e.number < 0 ? std::string(e.name) : e.name + (" " + std::to_string(e.number)),
         e.track == 0 ? int{kMain} : kBuckets + std::max(0, e.number), e.begin_s + offset_s,
         e.end_s - e.begin_s});
  const auto all = gather_text(comm, json_text(mine));
  if (comm.rank() != 0) return;

  std::vector<json> ranks;
  double start = std::numeric_limits<double>::infinity();
  std::size_t dropped = 0;
  for (const auto& text : all) {
    ranks.push_back(json::parse(text));
    dropped += ranks.back()["dropped"].get<std::size_t>();
    for (const auto& e : ranks.back()["events"]) start = std::min(start, e[2].get<double>());
  }
  json events = json::array();
  const std::string waiting = phase_name(Phase::kAllReduceWait);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const int process = static_cast<int>(r);
    events.push_back(
        name_of("process_name", process, kMain,
                "rank " + std::to_string(r) + " on " + ranks[r]["host"].get<std::string>()));
    events.push_back({{"ph", "M"},
                      {"name", "process_sort_index"},
                      {"pid", process},
                      {"tid", 0},
                      {"args", {{"sort_index", process}}}});
    events.push_back(name_of("thread_name", process, kMain, "main thread"));
    std::set<int> buckets;
    for (const auto& e : ranks[r]["events"])
      if (const int row = e[1]; row >= kBuckets) buckets.insert(row);
    for (const int row : buckets)
      events.push_back(name_of("thread_name", process, row,
                               "network: bucket " + std::to_string(row - kBuckets)));
    for (const auto& e : ranks[r]["events"]) {
      const double at_us = 1e6 * (e[2].get<double>() - start);
      events.push_back({{"ph", "X"},
                        {"name", e[0]},
                        {"pid", process},
                        {"tid", e[1]},
                        {"ts", at_us},
                        {"dur", 1e6 * e[3].get<double>()}});
      if (e[0] == waiting)
        events.push_back({{"ph", "i"},
                          {"s", "t"},
                          {"name", "rank " + std::to_string(r) + " ready"},
                          {"pid", 0},
                          {"tid", kReady},
                          {"ts", at_us}});
    }
  }
  events.push_back(name_of("thread_name", 0, kReady, "ranks ready for the last gradients"));
  write_atomically(
      path, json_text(json({{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}})));
  if (dropped > 0)
    log_info("timeline: " + path.string() + " holds the first spans; " + std::to_string(dropped) +
             " later ones did not fit");
}

}  // namespace chexnet
