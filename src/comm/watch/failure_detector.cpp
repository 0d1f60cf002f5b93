#include "chexnet/comm/watch/failure_detector.hpp"

#include <algorithm>
#include <set>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

template <class Predicate>
std::vector<int> ranks_where(const std::vector<RankView>& ranks,
                             Predicate predicate) {
  std::vector<int> found;
  for (const auto& rank : ranks)
    if (!rank.ended && predicate(rank)) found.push_back(rank.rank);
  return found;
}

// Nobody has heard of a host for several reports, though not yet for so long
// that this alone were a failure.
constexpr double kQuiet_s = 2;

// The host of a GPU only launches there, and waits: it stands still when the
// GPU does.
bool computes_on_gpu(const RankView& r) {
  const bool launches = r.phase == Phase::kCopy || r.phase == Phase::kForward ||
                        r.phase == Phase::kBackward ||
                        r.phase == Phase::kOptimizer;
  return launches && !r.gpu.empty();
}

// All have computed, and began the sums of all buckets: a rank that waits for
// an earlier bucket has fewer of them.
bool all_sum_gradients_of_one_step(const std::vector<RankView>& ranks) {
  const auto differs = [&](const RankView& r) {
    return !r.ended &&
           (r.phase != Phase::kAllReduceWait || r.step != ranks.front().step);
  };
  return std::ranges::none_of(ranks, differs);
}

std::string list_text(const std::vector<int>& ranks) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < kMost; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > kMost)
    text += " and " + std::to_string(ranks.size() - kMost) + " more";
  return text;
}

// "process 4711", "processes 4711, 4712": those of `ranks` that are stopped.
std::string stopped_processes(const std::vector<int>& ranks,
                              const std::vector<RankView>& views) {
  std::vector<int> processes;
  for (const auto& view : views)
    if (view.stopped && std::ranges::find(ranks, view.rank) != ranks.end())
      processes.push_back(view.pid);
  if (processes.empty()) return "";
  return (processes.size() == 1 ? "process " : "processes ") +
         list_text(processes) + (processes.size() == 1 ? " is" : " are") +
         " stopped by a signal or a debugger";
}

}  // namespace

const char* cause_name(FailureCause cause) {
  switch (cause) {
    case FailureCause::kDied:
      return "died";
    case FailureCause::kCutOff:
      return "cut off";
    case FailureCause::kStopped:
      return "stopped";
    case FailureCause::kStuck:
      return "stuck";
    case FailureCause::kGpu:
      return "GPU hangs";
    case FailureCause::kNetwork:
      return "network";
  }
  return "";
}

int Failure::exit_code() const {
  const bool lost =
      cause == FailureCause::kDied || cause == FailureCause::kCutOff;
  return static_cast<int>(lost ? ExitCode::kDevice : ExitCode::kHang);
}

std::optional<Failure> detect_failure(const std::vector<RankView>& ranks,
                                      const WatchTimeouts& timeouts) {
  const auto made = [](FailureCause cause,
                       std::vector<int> named) -> std::optional<Failure> {
    if (named.empty()) return std::nullopt;
    return Failure{cause, std::move(named)};
  };
  if (auto failure =
          made(FailureCause::kDied,
               ranks_where(ranks, [](const RankView& r) { return r.gone; })))
    return failure;
  if (auto failure = made(FailureCause::kCutOff,
                          ranks_where(ranks, [&](const RankView& r) {
                            return r.host_silent_s > timeouts.silence_s;
                          })))
    return failure;
  const auto is_silent = [&](const RankView& r) {
    return r.heartbeat_age_s > timeouts.silence_s;
  };
  const auto is_stopped = [](const RankView& r) { return r.stopped; };
  // Ranks that were stopped together fell silent within one heartbeat.
  if (!ranks_where(ranks, is_silent).empty())
    return made(FailureCause::kStopped,
                ranks_where(ranks, [&](const RankView& r) {
                  return is_silent(r) || is_stopped(r);
                }));
  const auto waits = [](const RankView& r) { return is_collective(r.phase); };
  const auto is_still = [&](const RankView& r) {
    return r.phase_age_s > timeouts.still_s;
  };
  const auto still = ranks_where(ranks, is_still);
  const auto running = ranks_where(ranks, [](const RankView&) { return true; });
  const bool one_waits = std::ranges::any_of(ranks, [&](const RankView& r) {
    return !r.ended && waits(r) && is_still(r);
  });
  if (!one_waits && still.size() < running.size()) return std::nullopt;
  // A quiet host's last report is no reason to name one of its ranks, nor one
  // that waits for them.
  if (auto failure =
          made(FailureCause::kCutOff, ranks_where(ranks, [](const RankView& r) {
                 return r.host_silent_s > kQuiet_s;
               })))
    return failure;
  // Others waited for them before they were stopped, or they wait themselves.
  if (auto failure =
          made(FailureCause::kStopped, ranks_where(ranks, is_stopped)))
    return failure;
  const auto late =
      ranks_where(ranks, [&](const RankView& r) { return !waits(r); });
  const auto on_gpu = ranks_where(ranks, computes_on_gpu);
  if (auto failure = made(
          late == on_gpu ? FailureCause::kGpu : FailureCause::kStuck, late))
    return failure;
  uint64_t lowest = ~uint64_t{0}, highest = 0;
  for (const auto& r : ranks) {
    if (r.ended) continue;
    lowest = std::min(lowest, r.sequence);
    highest = std::max(highest, r.sequence);
  }
  if (lowest != highest && !all_sum_gradients_of_one_step(ranks))
    return made(FailureCause::kStuck,
                ranks_where(ranks, [&](const RankView& r) {
                  return r.sequence == lowest;
                }));
  return made(FailureCause::kNetwork, running);
}

std::string failure_text(const Failure& failure,
                         const std::vector<RankView>& ranks) {
  const auto found =
      std::ranges::find(ranks, failure.ranks.front(), &RankView::rank);
  if (found == ranks.end()) return cause_name(failure.cause);
  const RankView& r = *found;
  const std::string of_step =
      r.step > 0 ? " of step " + std::to_string(r.step) : "";
  const std::string doing = phase_name(r.phase) + of_step + " (collective " +
                            std::to_string(r.sequence) + ")";
  const std::string place =
      " on " + r.host + (r.gpu.empty() ? "" : " (" + r.gpu + ")");
  const std::string who =
      (failure.ranks.size() == 1 ? "Rank " : "Ranks ") +
      list_text(failure.ranks) +
      (failure.ranks.size() == 1 ? place : ", first" + place);
  const bool others_wait = std::ranges::any_of(ranks, [](const RankView& rank) {
    return !rank.ended && is_collective(rank.phase);
  });
  switch (failure.cause) {
    case FailureCause::kDied:
      return formatted("{} died (process {}) during {}", who, r.pid, doing);
    case FailureCause::kCutOff: {
      std::set<std::string> hosts;
      for (const auto& rank : ranks)
        if (std::ranges::find(failure.ranks, rank.rank) != failure.ranks.end())
          hosts.insert(rank.host);
      std::string names;
      for (const auto& host : hosts)
        names += (names.empty() ? "" : ", ") + host;
      return formatted(
          "Host {} (rank {}) has not been heard for {} s: it is down, its "
          "network is cut or all its ranks are stopped; it was last seen in {}",
          names, list_text(failure.ranks), fixed(r.host_silent_s, 1), doing);
    }
    case FailureCause::kStopped: {
      const std::string stopped = stopped_processes(failure.ranks, ranks);
      return formatted(
          "{} stopped answering {} s ago during {} ({})", who,
          fixed(r.heartbeat_age_s, 1), doing,
          stopped.empty()
              ? formatted("process {} is there but does not run", r.pid)
              : stopped);
    }
    case FailureCause::kStuck:
      return formatted(
          "{}{} been in {} for {} s{}", who,
          failure.ranks.size() == 1 ? " has" : " have", doing,
          fixed(r.phase_age_s, 1),
          others_wait
              ? " while others wait for it"
              : formatted(", and no rank has moved since (process {})", r.pid));
    case FailureCause::kGpu:
      return formatted(
          "{}: the GPU has been computing step {} for {} s and does not "
          "finish{}",
          who, r.step, fixed(r.phase_age_s, 1),
          others_wait ? ", while others wait for its gradients" : "");
    case FailureCause::kNetwork:
      return formatted(
          "All ranks have waited {} s for each other in {}: the network "
          "between them does not pass data",
          fixed(r.phase_age_s, 1), doing);
  }
  return "";
}

}  // namespace chexnet
