// The area under the ROC curve is the fraction of (positive, negative) pairs in
// which the positive has the higher score, ties counting one half (Mann and
// Whitney's U). Scores sorted ascending, each group of equal scores wins all
// negatives below it and half of those in it.
#include "auroc.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <vector>

namespace chexnet {

std::optional<double> auroc(std::span<const double> scores,
                            std::span<const float> labels) {
  assert(scores.size() == labels.size());
  std::vector<std::pair<double, bool>> cases;
  cases.reserve(scores.size());
  uint64_t positives = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(labels[i])) continue;
    if (std::isnan(scores[i]))
      return std::nullopt;  // it has no place in an order
    cases.emplace_back(scores[i], labels[i] > 0.5f);
    positives += labels[i] > 0.5f ? 1 : 0;
  }
  const uint64_t negatives = cases.size() - positives;
  if (positives == 0 || negatives == 0) return std::nullopt;
  std::ranges::sort(cases, {}, &std::pair<double, bool>::first);
  // Twice the number of (positive, negative) pairs won, ties counting one:
  // exact in integers.
  uint64_t twice_won = 0, negatives_below = 0;
  for (size_t i = 0; i < cases.size();) {
    uint64_t tied_positives = 0, tied_negatives = 0;
    size_t j = i;
    for (; j < cases.size() && cases[j].first == cases[i].first; ++j)
      ++(cases[j].second ? tied_positives : tied_negatives);
    twice_won += tied_positives * (2 * negatives_below + tied_negatives);
    negatives_below += tied_negatives;
    i = j;
  }
  return static_cast<double>(twice_won) /
         (2.0 * static_cast<double>(positives) *
          static_cast<double>(negatives));
}

}  // namespace chexnet
