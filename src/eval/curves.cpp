#include "chexnet/eval/curves.hpp"

#include <cassert>
#include <cmath>

namespace chexnet {
namespace {

bool one_sided(const RankedCases& ranked) {
  return ranked.positives == 0 || ranked.negatives == 0;
}

}  // namespace

// `steps` are groups of tied scores that hold positives; all between two of
// them is negative. A tie is one slanted line, as no threshold can part it.
CurvePoints roc_curve(const RankedCases& ranked) {
  if (one_sided(ranked)) return {};
  const auto positives = static_cast<double>(ranked.positives);
  const auto negatives = static_cast<double>(ranked.negatives);
  CurvePoints points = {{0, 0}};
  size_t found = 0;  // positives so far
  const auto add = [&](size_t cases) {
    points.emplace_back(static_cast<double>(cases - found) / negatives,
                        static_cast<double>(found) / positives);
  };
  for (const auto& step : ranked.steps) {
    add(step.above_end);
    found += step.positives_end - step.tied_end;
    add(step.positives_end);
  }
  points.emplace_back(1, 1);
  return points;
}

// Stairs, not lines between the points: precision does not change linearly with
// recall (Davis and Goadrich, ICML 2006), and the area below the stairs is the
// average precision.
CurvePoints precision_recall_curve(const RankedCases& ranked) {
  if (one_sided(ranked)) return {};
  const auto positives = static_cast<double>(ranked.positives);
  CurvePoints points;
  size_t found = 0;
  for (const auto& step : ranked.steps) {
    const double before = static_cast<double>(found) / positives;
    found += step.positives_end - step.tied_end;
    const double precision =
        static_cast<double>(found) / static_cast<double>(step.positives_end);
    points.emplace_back(before, precision);
    points.emplace_back(static_cast<double>(found) / positives, precision);
  }
  return points;
}

CurvePoints thinned(const CurvePoints& points, double cell) {
  assert(cell > 0);
  CurvePoints kept;
  for (const auto& point : points)
    if (kept.empty() || std::abs(point.first - kept.back().first) >= cell ||
        std::abs(point.second - kept.back().second) >= cell)
      kept.push_back(point);
  if (!points.empty() && kept.back() != points.back())
    kept.push_back(points.back());
  return kept;
}

}  // namespace chexnet
