#include "chexnet/comm/judgement.hpp"

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

const char* cause_name(Cause cause) {
  switch (cause) {
    case Cause::kDied:
      return "died";
    case Cause::kCutOff:
      return "cut off";
    case Cause::kStopped:
      return "stopped";
    case Cause::kStuck:
      return "stuck";
    case Cause::kNetwork:
      return "network";
  }
  return "";
}

int Verdict::exit_code() const {
  const bool lost = cause == Cause::kDied || cause == Cause::kCutOff;
  return static_cast<int>(lost ? ExitCode::kDevice : ExitCode::kHang);
}

std::optional<Verdict> judge(const std::vector<RankView>& ranks, const Patience& patience) {
  const auto verdict = [](Cause cause, std::vector<int> guilty) -> std::optional<Verdict> {
    if (guilty.empty()) return std::nullopt;
    return Verdict{cause, std::move(guilty)};
  };
  if (auto v = verdict(Cause::kDied, ranks_where(ranks, [](const RankView& r) { return r.gone; })))
    return v;
  if (auto v = verdict(Cause::kCutOff, ranks_where(ranks, [&](const RankView& r) {
                         return r.host_silent_s > patience.silence_s;
                       })))
    return v;
  if (auto v = verdict(Cause::kStopped, ranks_where(ranks, [&](const RankView& r) {
                         return r.beat_age_s > patience.silence_s;
                       })))
    return v;
  const auto waits = [](const RankView& r) { return is_collective(r.operation); };
  const bool too_long = std::ranges::any_of(ranks, [&](const RankView& r) {
    return !r.ended && waits(r) && r.operation_age_s > patience.collective_s;
  });
  if (!too_long) return std::nullopt;
  if (auto v =
          verdict(Cause::kStuck, ranks_where(ranks, [&](const RankView& r) { return !waits(r); })))
    return v;
  std::uint64_t lowest = ~std::uint64_t{0}, highest = 0;
  for (const auto& r : ranks) {
    if (r.ended) continue;
    lowest = std::min(lowest, r.sequence);
    highest = std::max(highest, r.sequence);
  }
  if (lowest != highest)
    return verdict(Cause::kStuck,
                   ranks_where(ranks, [&](const RankView& r) { return r.sequence == lowest; }));
  return verdict(Cause::kNetwork, ranks_where(ranks, [](const RankView&) { return true; }));
}

std::string verdict_text(const Verdict& verdict, const std::vector<RankView>& ranks) {
  const auto found = std::ranges::find(ranks, verdict.ranks.front(), &RankView::rank);
  if (found == ranks.end()) return cause_name(verdict.cause);
  const RankView& r = *found;
  const std::string doing = std::string(operation_name(r.operation)) + " of step " +
                            std::to_string(r.step) + " (operation " + std::to_string(r.sequence) +
                            ")";
  const std::string place = " on " + r.host + (r.gpu.empty() ? "" : " (" + r.gpu + ")");
  const std::string who = (verdict.ranks.size() == 1 ? "Rank " : "Ranks ") +
                          list_text(verdict.ranks) +
                          (verdict.ranks.size() == 1 ? place : ", first" + place);
  switch (verdict.cause) {
    case Cause::kDied:
      return who + " died (process " + std::to_string(r.pid) + ") during " + doing;
    case Cause::kCutOff: {
      std::set<std::string> hosts;
      for (const auto& rank : ranks)
        if (std::ranges::find(verdict.ranks, rank.rank) != verdict.ranks.end())
          hosts.insert(rank.host);
      std::string names;
      for (const auto& host : hosts) names += (names.empty() ? "" : ", ") + host;
      return "Host " + names + " (rank " + list_text(verdict.ranks) + ") has not been heard for " +
             fixed(r.host_silent_s, 1) + " s: it is down or its network is cut; it was last seen " +
             "in " + doing;
    }
    case Cause::kStopped:
      return who + " stopped answering " + fixed(r.beat_age_s, 1) + " s ago during " + doing +
             " (process " + std::to_string(r.pid) + " is there but does not run)";
    case Cause::kStuck:
      return who + " has been in " + doing + " for " + fixed(r.operation_age_s, 1) +
             " s while others wait for it";
    case Cause::kNetwork:
      return "All ranks have waited " + fixed(r.operation_age_s, 1) + " s for each other in " +
             doing + ": the network between them does not pass data";
  }
  return "";
}

}  // namespace chexnet
