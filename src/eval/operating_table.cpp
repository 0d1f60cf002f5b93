#include "chexnet/eval/operating_table.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
namespace {

using Column = ScoredColumns::Column;

// Where a rule found no threshold (nothing reached that sensitivity) there is a
// point without figures, so that the table has the same lines each time.
OperatingPoint apply(const FindingRules::Point& chosen, const Column& test) {
  OperatingPoint point;
  point.finding = test.finding;
  point.rule = chosen.rule;
  point.threshold = chosen.threshold;
  if (point.threshold)
    point.confusion = confusion_at(*point.threshold, test.scores, test.labels);
  return point;
}

}  // namespace

// A threshold scored on the images it was chosen on looks better than it is.
void refuse_common_images(const Predictions& test,
                          const Predictions& validation) {
  const std::unordered_set<std::string> known(validation.images.begin(),
                                              validation.images.end());
  const auto common = std::ranges::count_if(
      test.images, [&](const auto& image) { return known.contains(image); });
  if (common > 0)
    throw DataError(
        "[operating point] {} of the scored images are also in the table that "
        "thresholds are chosen on. Hint: choose on validation, score test",
        common);
}

std::vector<OperatingPoint> operating_points(
    const Predictions& test, const std::vector<std::string>& findings,
    const DecisionRules* rules, std::optional<double> threshold) {
  std::vector<OperatingPoint> points;
  for (const Column& column : scored_columns(test, findings).columns) {
    if (rules != nullptr) {
      const FindingRules* chosen = rules->find(column.finding);
      if (chosen == nullptr)
        throw DataError(
            "[operating point] {} is not in the table that thresholds are "
            "chosen on. Hint: score that table with the same network",
            column.finding);
      for (const auto& rule : chosen->points) {
        OperatingPoint point = apply(rule, column);
        point.chosen_on_images = chosen->positives + chosen->negatives;
        point.chosen_on_positives = chosen->positives;
        points.push_back(std::move(point));
      }
    }
    if (threshold) points.push_back(apply({"threshold", threshold}, column));
  }
  return points;
}

}  // namespace chexnet
