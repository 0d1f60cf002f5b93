#include "chexnet/eval/operating_point.hpp"

#include <cassert>
#include <cmath>
#include <cstdint>

#include "chexnet/eval/ranked_cases.hpp"

namespace chexnet {
namespace {

// Calling positive what has at least the score of a step.
struct Choice {
  double threshold;
  size_t true_positives, false_positives;
};

struct Choices {
  std::vector<Choice> steps;  // from the highest threshold down
  size_t positives = 0, negatives = 0;
};

// Empty where no threshold is to be chosen.
std::optional<Choices> choices_of(std::span<const double> scores,
                                  std::span<const float> labels) {
  const auto ranked = rank_cases(scores, labels);
  if (!ranked || ranked->positives == 0 || ranked->negatives == 0)
    return std::nullopt;
  Choices choices{{}, ranked->positives, ranked->negatives};
  size_t found = 0;
  for (const auto& step : ranked->steps) {
    found += step.positives_end - step.tied_end;
    choices.steps.push_back({scores[ranked->cases[step.tied_end]], found,
                             step.positives_end - found});
  }
  return choices;
}

double share(size_t part, size_t all) {
  return static_cast<double>(part) / static_cast<double>(all);
}

std::optional<double> ratio(double part, double rest) {
  if (part + rest == 0) return std::nullopt;
  return part / (part + rest);
}

}  // namespace

std::optional<double> youden_threshold(std::span<const double> scores,
                                       std::span<const float> labels) {
  const auto choices = choices_of(scores, labels);
  if (!choices) return std::nullopt;
  // Times positives times negatives, so that ties are seen.
  const auto index = [&](const Choice& c) {
    return static_cast<int64_t>(c.true_positives * choices->negatives) -
           static_cast<int64_t>(c.false_positives * choices->positives);
  };
  Choice best = choices->steps.front();
  for (const Choice& c : choices->steps)
    if (index(c) > index(best)) best = c;
  return best.threshold;
}

std::optional<double> threshold_of_sensitivity(std::span<const double> scores,
                                               std::span<const float> labels,
                                               double sensitivity) {
  assert(sensitivity >= 0 && sensitivity <= 1);
  const auto choices = choices_of(scores, labels);
  if (!choices) return std::nullopt;
  for (const Choice& c : choices->steps)
    if (share(c.true_positives, choices->positives) >= sensitivity)
      return c.threshold;
  return std::nullopt;  // not reached: the last step finds all
}

std::optional<double> threshold_of_specificity(std::span<const double> scores,
                                               std::span<const float> labels,
                                               double specificity) {
  assert(specificity >= 0 && specificity <= 1);
  const auto choices = choices_of(scores, labels);
  if (!choices) return std::nullopt;
  std::optional<double> lowest;
  for (const Choice& c : choices->steps)
    if (share(choices->negatives - c.false_positives, choices->negatives) >=
        specificity)
      lowest = c.threshold;
  return lowest;
}

std::optional<double> Proportion::value() const {
  if (cases == 0) return std::nullopt;
  return share(hits, cases);
}

std::optional<Interval> Proportion::interval() const {
  return wilson_interval(hits, cases);
}

std::optional<double> Confusion::f1() const {
  return ratio(2 * static_cast<double>(true_positives),
               static_cast<double>(false_positives + false_negatives));
}

std::optional<double> Confusion::ppv_at(double prevalence) const {
  const auto found = sensitivity().value(), spared = specificity().value();
  if (!found || !spared) return std::nullopt;
  return ratio(*found * prevalence, (1 - *spared) * (1 - prevalence));
}

std::optional<double> Confusion::npv_at(double prevalence) const {
  const auto found = sensitivity().value(), spared = specificity().value();
  if (!found || !spared) return std::nullopt;
  return ratio(*spared * (1 - prevalence), (1 - *found) * prevalence);
}

Confusion confusion_at(double threshold, std::span<const double> scores,
                       std::span<const float> labels) {
  assert(scores.size() == labels.size());
  Confusion confusion;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(labels[i]) || std::isnan(scores[i])) continue;
    const bool called = scores[i] >= threshold;
    if (labels[i] > 0.5f)
      ++(called ? confusion.true_positives : confusion.false_negatives);
    else
      ++(called ? confusion.false_positives : confusion.true_negatives);
  }
  return confusion;
}

}  // namespace chexnet
