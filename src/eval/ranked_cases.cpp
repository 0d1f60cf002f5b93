#include "chexnet/eval/ranked_cases.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace chexnet {
namespace {

struct Case {
  double score;
  uint32_t index;
  bool positive;
};

// The group of equal scores that begins at `first`.
size_t run_end(const std::vector<Case>& cases, size_t first) {
  size_t end = first;
  while (end < cases.size() && cases[end].score == cases[first].score) ++end;
  return end;
}

}  // namespace

std::optional<RankedCases> rank_cases(std::span<const double> scores,
                                      std::span<const float> labels) {
  assert(scores.size() == labels.size());
  std::vector<Case> cases;
  cases.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(labels[i])) continue;
    if (std::isnan(scores[i])) return std::nullopt;
    cases.push_back({scores[i], static_cast<uint32_t>(i), labels[i] > 0.5f});
  }
  // Of equal scores the negatives first. The index makes the order one and the
  // same in every standard library.
  std::ranges::sort(cases, [](const Case& a, const Case& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.positive != b.positive) return b.positive;
    return a.index < b.index;
  });

  RankedCases ranked;
  for (const Case& c : cases) {
    ranked.cases.push_back(c.index);
    ++(c.positive ? ranked.positives : ranked.negatives);
  }
  for (size_t first = 0; first < cases.size();) {
    const size_t end = run_end(cases, first);
    size_t tied_end = first;
    while (tied_end < end && !cases[tied_end].positive) ++tied_end;
    if (tied_end < end)
      ranked.steps.push_back({static_cast<uint32_t>(first),
                              static_cast<uint32_t>(tied_end),
                              static_cast<uint32_t>(end)});
    first = end;
  }
  return ranked;
}

std::optional<double> average_precision(const RankedCases& ranked) {
  if (ranked.positives == 0 || ranked.negatives == 0) return std::nullopt;
  double sum = 0;
  size_t found = 0;
  for (const auto& step : ranked.steps) {
    const size_t here = step.positives_end - step.tied_end;
    found += here;
    sum += static_cast<double>(here) * static_cast<double>(found) /
           static_cast<double>(step.positives_end);
  }
  return sum / static_cast<double>(ranked.positives);
}

}  // namespace chexnet
