#include "chexnet/eval/operating_table.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
namespace {

using Column = ScoredColumns::Column;

void refuse_common_images(const Predictions& test,
                          const Predictions& validation) {
  const std::unordered_set<std::string> known(validation.images.begin(),
                                              validation.images.end());
  const auto common = std::ranges::count_if(
      test.images, [&](const auto& image) { return known.contains(image); });
  if (common > 0)
    throw DataError("[operating point] " + std::to_string(common) +
                    " of the scored images are also in the table that "
                    "thresholds are chosen on. Hint: choose on validation, "
                    "score test");
}

using Chosen = std::pair<std::string, std::optional<double>>;

std::vector<Chosen> choose(const Column& on, const OperatingRules& rules) {
  return {{"youden", youden_threshold(on.scores, on.labels)},
          {"sensitivity " + number_text(rules.sensitivity),
           threshold_of_sensitivity(on.scores, on.labels, rules.sensitivity)},
          {"specificity " + number_text(rules.specificity),
           threshold_of_specificity(on.scores, on.labels, rules.specificity)}};
}

OperatingPoint apply(const Chosen& chosen, const Column& test) {
  OperatingPoint point;
  point.finding = test.finding;
  std::tie(point.rule, point.threshold) = chosen;
  if (point.threshold)
    point.confusion = confusion_at(*point.threshold, test.scores, test.labels);
  return point;
}

}  // namespace

std::vector<OperatingPoint> operating_points(
    const Predictions& test, const std::vector<std::string>& findings,
    const Predictions* validation, const OperatingRules& rules) {
  if (validation != nullptr) refuse_common_images(test, *validation);
  std::vector<OperatingPoint> points;
  for (const Column& column : scored_columns(test, findings).columns) {
    if (validation != nullptr) {
      if (!find_finding(validation->findings, column.finding))
        throw DataError("[operating point] " + column.finding +
                        " is not in the table that thresholds are chosen on. "
                        "Hint: score that table with the same network");
      const Column on =
          scored_columns(*validation, {column.finding}).columns.front();
      for (const auto& chosen : choose(on, rules)) {
        OperatingPoint point = apply(chosen, column);
        point.chosen_on_images = on.scores.size();
        point.chosen_on_positives = on.positives;
        points.push_back(std::move(point));
      }
    }
    if (rules.threshold)
      points.push_back(apply({"threshold", rules.threshold}, column));
  }
  return points;
}

}  // namespace chexnet
