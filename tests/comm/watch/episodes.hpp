// The times of a simulated run in which a host might be thought dead. Nearly
// always every host has been heard, and answered, seconds ago, and no reporter
// or observer ends a run for that. So only the critical moments of hours of a
// thousand hosts are simulated: the forecast tells without a simulation when a
// line comes through.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "bad_network.hpp"
#include "simulated_cluster.hpp"

namespace chexnet {

struct Episode {
  int64_t begin = 0, end = 0;  // ticks
  int host = 0;
};

// Whether the report of a tick is there, and its answer back, within a second.
inline bool is_round_trip(const Forecast& forecast, int host, int observer,
                          int64_t tick) {
  constexpr double kSoon_s = 0.25;
  const auto comes_soon = [&](const LineId& line) {
    const auto delay_s = forecast.delay_s(line);
    return delay_s && *delay_s < kSoon_s;
  };
  const double sent_s = seconds(tick);
  const double answered_s = sent_s + kSoon_s + 2 * kTick_s;
  return comes_soon({LineKind::kReport, host, observer, tick}) &&
         comes_soon({LineKind::kAnswer, observer, host, tick}) &&
         !forecast.is_out(host, sent_s, answered_s) &&
         !forecast.is_out(observer, sent_s, answered_s);
}

// Those of one host and one observer: longer than `silence` ticks there is no
// round trip. Each begins before the last one, with what was on its way then.
inline void add_episodes(const Forecast& forecast, int host, int observer,
                         int64_t silence, int64_t end,
                         std::vector<Episode>& episodes) {
  constexpr int64_t kUntilHeard = 16;
  const int64_t on_its_way = ticks(forecast.longest_delay_s()) + kTicksOfReport;
  const auto comes = [&](int64_t tick) {
    return is_round_trip(forecast, host, observer, tick);
  };
  for (int64_t last = 0; last < end;) {
    // From the far end: most often that is the only one to look at.
    int64_t next = last + silence;
    while (next > last && !comes(next)) next -= kTicksOfReport;
    if (next == last) {
      for (next = last + silence; next < end && !comes(next);)
        next += kTicksOfReport;
      episodes.push_back({std::max<int64_t>(last - on_its_way, 0),
                          std::min(next + kUntilHeard, end), host});
    }
    last = next;
  }
}

// Of all hosts, by time; those of one host do not overlap.
inline std::vector<Episode> episodes_of(const Forecast& forecast, int hosts,
                                        int64_t silence, int64_t end) {
  std::vector<Episode> episodes;
  for (int host = 0; host < hosts; ++host) {
    std::vector<Episode> found;
    for (int observer = 0; observer < 2; ++observer)
      if (host != observer)
        add_episodes(forecast, host, observer, silence, end, found);
    std::ranges::sort(found, {}, &Episode::begin);
    const auto first = static_cast<std::ptrdiff_t>(episodes.size());
    for (const auto& episode : found)
      if (std::ssize(episodes) == first || episodes.back().end < episode.begin)
        episodes.push_back(episode);
      else
        episodes.back().end = std::max(episodes.back().end, episode.end);
  }
  std::ranges::sort(episodes, {}, &Episode::begin);
  return episodes;
}

struct PlayedEpisodes {
  double simulated_s = 0;  // of the run, until its end or a decision
  double longest_silence_s = 0;
  uint64_t episodes = 0, sent = 0;
  double played_host_s = 0;
  std::optional<Verdict> verdict;
};

// Both observers and some hosts, until a moment. Tells why the run ends.
inline std::optional<Verdict> play(const Forecast& forecast,
                                   const std::set<int>& hosts, int64_t begin,
                                   double end_s, double silence_s,
                                   PlayedEpisodes& result) {
  std::vector<int> members = {0, 1};
  for (const int host : hosts)
    if (host > 1) members.push_back(host);
  SimulatedCluster cluster(forecast, members, silence_s, begin);
  const double begin_s = cluster.now;
  auto verdict = cluster.run_until_explained(end_s);
  result.sent += cluster.network.sent;
  result.played_host_s +=
      (cluster.now - begin_s) * static_cast<double>(hosts.size());
  result.longest_silence_s =
      std::max(result.longest_silence_s, cluster.longest_silence_s);
  return verdict;
}

// Simulates each host's episode without the others, as these matter little to
// its observers: only the second one lets the first speak for a while, once for
// all hosts. So the host that a decision names comes from a simulation of all
// hosts whose episodes contain it. `silence_s`: the silence that reporters and
// observers allow. `unplayed_s`: the time left out where no host is silent
// longer; far less.
inline PlayedEpisodes play_episodes(const Forecast& forecast, int hosts,
                                    double silence_s, double unplayed_s,
                                    double end_s) {
  PlayedEpisodes result;
  double until_s = end_s;
  const auto episodes =
      episodes_of(forecast, hosts, ticks(unplayed_s), ticks(end_s));
  for (const auto& episode : episodes) {
    if (seconds(episode.begin) >= until_s) break;
    ++result.episodes;
    const auto verdict =
        play(forecast, {episode.host}, episode.begin,
             std::min(seconds(episode.end), until_s), silence_s, result);
    if (verdict) until_s = verdict->at_s;
  }
  result.simulated_s = until_s;
  if (until_s == end_s) return result;

  std::set<int> silent;
  int64_t begin = ticks(end_s);
  for (const auto& episode : episodes) {
    if (seconds(episode.begin) > until_s || seconds(episode.end) < until_s)
      continue;
    silent.insert(episode.host);
    begin = std::min(begin, episode.begin);
  }
  result.verdict =
      play(forecast, silent, begin, until_s + kTick_s, silence_s, result);
  return result;
}

}  // namespace chexnet
