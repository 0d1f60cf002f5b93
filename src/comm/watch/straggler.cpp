#include "chexnet/comm/watch/straggler.hpp"

#include <algorithm>
#include <numeric>

#include "chexnet/core/median.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

// Without the rank itself: of two ranks, a median of both would hide half of
// the slow one's excess.
double median_without(const std::vector<RankPace>& paces, size_t left_out,
                      double RankPace::*value) {
  std::vector<double> values;
  for (size_t r = 0; r < paces.size(); ++r)
    if (r != left_out) values.push_back(paces[r].*value);
  return median(std::move(values));
}

// In the order of what explains most: waiting, then a clock that is held down,
// then cores that somebody else uses.
std::string cause_of(const std::vector<RankPace>& paces, size_t rank,
                     double excess_s) {
  const RankPace& pace = paces[rank];
  const double more_data =
      pace.data_s - median_without(paces, rank, &RankPace::data_s);
  if (more_data > excess_s / 2)
    return "it waits for data (" + fixed(1e3 * pace.data_s, 1) +
           " ms per step): look at its disk, its cache and data.workers";
  if (pace.throttled > 0) return "its GPU's clock is held down: see doctor";
  constexpr double kTaken = 0.85;
  if (pace.cpu_fraction < kTaken)
    return "its threads got " + fixed(100 * pace.cpu_fraction, 0) +
           " % of the CPU time they could use: another process is on its cores";
  return "it computes more slowly: a lower clock, other work on the same "
         "memory, or a damaged GPU";
}

}  // namespace

// A rank is named once, and again only after it was as fast as the others: a
// slow GPU of a long run would fill the log otherwise. One window may be below
// the bound, since a pause of the others makes any rank look good for once.
std::vector<StragglerWatch::Alarm> StragglerWatch::add(
    const std::vector<RankPace>& paces) {
  std::vector<Alarm> alarms;
  ranks_.resize(paces.size());
  if (paces.size() < 2) return alarms;
  const auto windows = static_cast<size_t>(options_.windows);
  for (size_t r = 0; r < paces.size(); ++r) {
    Rank& rank = ranks_[r];
    const double others = median_without(paces, r, &RankPace::own_s);
    rank.ratios.push_back(paces[r].own_s / std::max(others, 1e-9));
    if (rank.ratios.size() > windows) rank.ratios.pop_front();
    const double mean =
        std::accumulate(rank.ratios.begin(), rank.ratios.end(), 0.0) /
        static_cast<double>(rank.ratios.size());
    if (rank.slow) {
      rank.slow = mean > options_.recovered;
      continue;
    }
    const auto above = std::ranges::count_if(
        rank.ratios, [&](double ratio) { return ratio > options_.each; });
    const double excess = paces[r].own_s - others;
    if (rank.ratios.size() < windows || mean < options_.ratio ||
        above + 1 < options_.windows || excess < options_.least_excess_s)
      continue;
    rank.slow = true;
    alarms.push_back({static_cast<int>(r), mean, paces[r].own_s, others,
                      cause_of(paces, r, excess)});
  }
  return alarms;
}

}  // namespace chexnet
