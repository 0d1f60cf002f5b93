#include "chexnet/watch/failure_detector.hpp"

#include <algorithm>
#include <set>

#include "chexnet/core/error.hpp"
#include "chexnet/core/resources.hpp"

namespace chexnet {
namespace {

template <class Predicate>
std::vector<int> ranks_where(const std::vector<RankView>& ranks, Predicate predicate) {
  std::vector<int> found;
  for (const auto& rank : ranks)
    if (!rank.ended && predicate(rank)) found.push_back(rank.rank);
  return found;
}

std::string list_text(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < kMost; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > kMost) text += " and " + std::to_string(ranks.size() - kMost) + " more";
  return text;
}

}  // namespace

const char* cause_name(HaltCause cause) {
  switch (cause) {
    case HaltCause::kDied:
      return "died";
    case HaltCause::kCutOff:
      return "cut off";
    case HaltCause::kStopped:
      return "stopped";
    case HaltCause::kStuck:
      return "stuck";
    case HaltCause::kNetwork:
      return "network";
  }
  return "";
}

int Halt::exit_code() const {
  const bool lost = cause == HaltCause::kDied || cause == HaltCause::kCutOff;
  return static_cast<int>(lost ? ExitCode::kDevice : ExitCode::kHang);
}

std::optional<Halt> halt_of(const std::vector<RankView>& ranks, const Patience& patience) {
  const auto made = [](HaltCause cause, std::vector<int> named) -> std::optional<Halt> {
    if (named.empty()) return std::nullopt;
    return Halt{cause, std::move(named)};
  };
  if (auto halt =
          made(HaltCause::kDied, ranks_where(ranks, [](const RankView& r) { return r.gone; })))
    return halt;
  if (auto halt = made(HaltCause::kCutOff, ranks_where(ranks, [&](const RankView& r) {
                         return r.host_silent_s > patience.silence_s;
                       })))
    return halt;
  if (auto halt = made(HaltCause::kStopped, ranks_where(ranks, [&](const RankView& r) {
                         return r.beat_age_s > patience.silence_s;
                       })))
    return halt;
  const auto waits = [](const RankView& r) { return is_collective(r.phase); };
  const bool too_long = std::ranges::any_of(ranks, [&](const RankView& r) {
    return !r.ended && waits(r) && r.phase_age_s > patience.collective_s;
  });
  if (!too_long) return std::nullopt;
  if (auto halt =
          made(HaltCause::kStuck, ranks_where(ranks, [&](const RankView& r) { return !waits(r); })))
    return halt;
  std::uint64_t lowest = ~std::uint64_t{0}, highest = 0;
  for (const auto& r : ranks) {
    if (r.ended) continue;
    lowest = std::min(lowest, r.sequence);
    highest = std::max(highest, r.sequence);
  }
  if (lowest != highest)
    return made(HaltCause::kStuck,
                ranks_where(ranks, [&](const RankView& r) { return r.sequence == lowest; }));
  return made(HaltCause::kNetwork, ranks_where(ranks, [](const RankView&) { return true; }));
}

std::string halt_text(const Halt& halt, const std::vector<RankView>& ranks) {
  const auto found = std::ranges::find(ranks, halt.ranks.front(), &RankView::rank);
  if (found == ranks.end()) return cause_name(halt.cause);
  const RankView& r = *found;
  const std::string doing = std::string(phase_name(r.phase)) + " of step " +
                            std::to_string(r.step) + " (collective " + std::to_string(r.sequence) +
                            ")";
  const std::string place = " on " + r.host + (r.gpu.empty() ? "" : " (" + r.gpu + ")");
  const std::string who = (halt.ranks.size() == 1 ? "Rank " : "Ranks ") + list_text(halt.ranks) +
                          (halt.ranks.size() == 1 ? place : ", first" + place);
  switch (halt.cause) {
    case HaltCause::kDied:
      return who + " died (process " + std::to_string(r.pid) + ") during " + doing;
    case HaltCause::kCutOff: {
      std::set<std::string> hosts;
      for (const auto& rank : ranks)
        if (std::ranges::find(halt.ranks, rank.rank) != halt.ranks.end()) hosts.insert(rank.host);
      std::string names;
      for (const auto& host : hosts) names += (names.empty() ? "" : ", ") + host;
      return "Host " + names + " (rank " + list_text(halt.ranks) + ") has not been heard for " +
             fixed(r.host_silent_s, 1) + " s: it is down or its network is cut; it was last seen " +
             "in " + doing;
    }
    case HaltCause::kStopped:
      return who + " stopped answering " + fixed(r.beat_age_s, 1) + " s ago during " + doing +
             " (process " + std::to_string(r.pid) + " is there but does not run)";
    case HaltCause::kStuck:
      return who + " has been in " + doing + " for " + fixed(r.phase_age_s, 1) +
             " s while others wait for it";
    case HaltCause::kNetwork:
      return "All ranks have waited " + fixed(r.phase_age_s, 1) + " s for each other in " + doing +
             ": the network between them does not pass data";
  }
  return "";
}

}  // namespace chexnet
