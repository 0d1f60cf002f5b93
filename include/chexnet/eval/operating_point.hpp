// "Is 0.12 positive?" A threshold is chosen on validation and applied to test:
// chosen on the images that it is judged by, it would look better than it is.
//
// scores [N]; labels [N]: 1 positive, 0 negative, NaN left out. An image is
// called positive when its score is at least the threshold.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "chexnet/eval/interval.hpp"

namespace chexnet {

// Thresholds are scores of positives that were seen: any other one calls as
// many positives right and no fewer negatives wrong. All are empty without a
// positive or without a negative, or when a labeled case has NaN as its score.

// The most of sensitivity + specificity - 1 (Youden, Cancer 1950); of several
// the highest threshold.
std::optional<double> youden_threshold(std::span<const double> scores,
                                       std::span<const float> labels);
// The highest threshold with at least this sensitivity, in 0..1.
std::optional<double> threshold_of_sensitivity(std::span<const double> scores,
                                               std::span<const float> labels,
                                               double sensitivity);
// The lowest threshold with at least this specificity, in 0..1. Empty also
// where no positive could be called so.
std::optional<double> threshold_of_specificity(std::span<const double> scores,
                                               std::span<const float> labels,
                                               double specificity);

// A fraction of cases.
struct Proportion {
  size_t hits = 0, cases = 0;
  std::optional<double> value() const;       // empty without cases
  std::optional<Interval> interval() const;  // Wilson's: see interval.hpp
};

// The result of calling images positive by a threshold.
struct Confusion {
  size_t true_positives = 0, false_positives = 0;
  size_t true_negatives = 0, false_negatives = 0;

  size_t positives() const { return true_positives + false_negatives; }
  size_t negatives() const { return true_negatives + false_positives; }
  bool few_positives() const { return positives() < kFewPositives; }
  Proportion sensitivity() const { return {true_positives, positives()}; }
  Proportion specificity() const { return {true_negatives, negatives()}; }
  // The fraction of those called positive that are positive, and of those
  // called negative that are negative. Both depend on how frequent the finding
  // is in these images.
  Proportion ppv() const {
    return {true_positives, true_positives + false_positives};
  }
  Proportion npv() const {
    return {true_negatives, true_negatives + false_negatives};
  }
  // 2 tp / (2 tp + fp + fn); empty at 0 / 0.
  std::optional<double> f1() const;
  // By Bayes' rule, where a fraction `prevalence` in 0..1 of images has the
  // finding. Empty where sensitivity or specificity is, and at 0 / 0.
  std::optional<double> ppv_at(double prevalence) const;
  std::optional<double> npv_at(double prevalence) const;
};

// A labeled case with NaN as its score is not counted.
Confusion confusion_at(double threshold, std::span<const double> scores,
                       std::span<const float> labels);

}  // namespace chexnet
