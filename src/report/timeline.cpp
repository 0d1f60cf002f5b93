#include "chexnet/report/timeline.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

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

// Each rank sends its spans with the clock offset added, so rank 0 only
// subtracts the first begin of all. Steady
// clocks of two hosts start anywhere: the offset is the median over some rounds
// of what rank 0's clock showed, at a barrier, less ours.

// Rows of a rank. The lanes of a track overlap in time, so each has a row.
constexpr int kMainRow = 0, kReadyRow = 1;
struct TrackRows {
  int first;
  const char* name;  // before the lane's number
};
constexpr std::array kStreams = {"compute stream", "communication stream"};
TrackRows rows_of(Track track) {
  switch (track) {
    case Track::kMain:
      return {kMainRow, "main thread"};
    case Track::kLoader:
      return {1'000, "loader: worker "};
    case Track::kReader:
      return {2'000, "loader: reader "};
    case Track::kNetwork:
      return {10'000, "network: bucket "};
    case Track::kGpu:
      return {100, "GPU: "};
  }
  return {kMainRow, ""};
}

json spans_of(const Recording& recording, double offset_s) {
  json spans = json::array();
  for (const auto& e : recording.events())
    spans.push_back(
        {{"name", e.number < 0 ? std::string(e.name)
                               : e.name + (" " + std::to_string(e.number))},
         {"track", static_cast<int>(e.track)},
         {"lane", e.lane},
         {"begin_s", e.begin_s + offset_s},
         {"s", e.end_s - e.begin_s}});
  return spans;
}

double first_begin_s(const json& spans) {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& e : spans)
    first = std::min(first, e["begin_s"].get<double>());
  return first;
}

json name_of(const char* kind, int process, int track,
             const std::string& name) {
  return {{"ph", "M"},
          {"name", kind},
          {"pid", process},
          {"tid", track},
          {"args", {{"name", name}}}};
}

void name_process(json& events, int rank, const std::string& host) {
  events.push_back(name_of("process_name", rank, kMainRow,
                           "rank " + std::to_string(rank) + " on " + host));
  events.push_back({{"ph", "M"},
                    {"name", "process_sort_index"},
                    {"pid", rank},
                    {"tid", 0},
                    {"args", {{"sort_index", rank}}}});
}

// The spans of a rank and its named rows. `start_s` is time 0 of the file.
void add_rank(json& events, int rank, const std::string& host,
              const json& spans, double start_s) {
  name_process(events, rank, host);
  std::map<int, std::string> rows = {{kMainRow, rows_of(Track::kMain).name}};
  for (const auto& e : spans) {
    const auto track = static_cast<Track>(e["track"].get<int>());
    const TrackRows of_track = rows_of(track);
    const int lane = e["lane"], row = of_track.first + lane;
    if (track != Track::kMain)
      rows[row] = of_track.name +
                  (track == Track::kGpu
                       ? std::string(kStreams.at(static_cast<size_t>(lane)))
                       : std::to_string(lane));
    events.push_back({{"ph", "X"},
                      {"name", e["name"]},
                      {"pid", rank},
                      {"tid", row},
                      {"ts", 1e6 * (e["begin_s"].get<double>() - start_s)},
                      {"dur", 1e6 * e["s"].get<double>()}});
  }
  for (const auto& [row, name] : rows)
    events.push_back(name_of("thread_name", rank, row, name));
}

// On rank 0, when each rank began to wait for gradients.
void add_ready(json& events, int rank, const json& spans, double start_s) {
  const std::string waiting = phase_name(Phase::kAllReduceWait);
  for (const auto& e : spans)
    if (e["name"] == waiting && e["track"] == static_cast<int>(Track::kMain))
      events.push_back({{"ph", "i"},
                        {"s", "t"},
                        {"name", "rank " + std::to_string(rank) + " ready"},
                        {"pid", 0},
                        {"tid", kReadyRow},
                        {"ts", 1e6 * (e["begin_s"].get<double>() - start_s)}});
}

void write_events(const std::filesystem::path& path, json events) {
  write_atomically(path,
                   json_text(json({{"traceEvents", std::move(events)},
                                   {"displayTimeUnit", "ms"}})),
                   {}, "--timeline");
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

void write_timeline(Communicator& comm, const Recording& recording,
                    double offset_s, const std::filesystem::path& path) {
  const auto ranks =
      gather_json(comm, json({{"host", host_name()},
                              {"dropped", recording.dropped()},
                              {"spans", spans_of(recording, offset_s)}}));
  if (comm.rank() != 0) return;

  double start_s = std::numeric_limits<double>::infinity();
  size_t dropped = 0;
  for (const auto& rank : ranks) {
    start_s = std::min(start_s, first_begin_s(rank["spans"]));
    dropped += rank["dropped"].get<size_t>();
  }
  json events = json::array();
  for (size_t r = 0; r < ranks.size(); ++r) {
    const int rank = static_cast<int>(r);
    add_rank(events, rank, ranks[r]["host"], ranks[r]["spans"], start_s);
    add_ready(events, rank, ranks[r]["spans"], start_s);
  }
  if (ranks.size() > 1)
    events.push_back(name_of("thread_name", 0, kReadyRow,
                             "ranks ready for the last gradients"));
  write_events(path, std::move(events));
  if (dropped > 0)
    log_info("timeline: " + path.string() + " holds the first spans; " +
             std::to_string(dropped) + " later ones did not fit");
}

void write_own_timeline(int rank, const Recording& recording,
                        const PhaseSlot* now,
                        const std::filesystem::path& path) {
  json spans = spans_of(recording, 0);
  if (now != nullptr) {
    const double since_s = now->since_s.load();
    spans.push_back(
        {{"name", phase_name(static_cast<Phase>(now->phase.load()))},
         {"track", static_cast<int>(Track::kMain)},
         {"lane", 0},
         {"begin_s", since_s},
         {"s", now_s() - since_s}});
  }
  json events = json::array();
  add_rank(events, rank, host_name(), spans, first_begin_s(spans));
  write_events(path, std::move(events));
}

}  // namespace chexnet
