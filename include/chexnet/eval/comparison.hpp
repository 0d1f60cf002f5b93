// Two networks on the same images: is the difference more than chance?
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/bootstrap.hpp"
#include "chexnet/eval/delong.hpp"
#include "chexnet/eval/figures.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

struct FindingComparison {
  std::string finding;
  size_t positives = 0, negatives = 0;
  std::optional<double> auroc_a, auroc_b;
  // AUROC of a minus that of b; the interval is of the same resamples for both.
  Estimate difference;
  std::optional<double> p;  // two-sided, of these resamples
  // Without resampling, by patient; its p too.
  std::optional<PairedTest> delong;
  bool few_positives() const { return positives < kFewPositives; }
};

struct Comparison {
  size_t images = 0;    // that both have scored
  size_t only_one = 0;  // that one of the two has scored
  std::vector<FindingComparison> findings;
  MeanFigure mean_difference;
  std::optional<double> mean_p;
};

// Images meet by name, findings as in findings.hpp; `findings` as in score(),
// of those that both have. Labels and patients are those of `a`. Of many
// findings some differ by chance: one of twenty at p = 0.05. DataError when no
// image or no finding is in both, or a label differs.
Comparison compare(const Predictions& a, const Predictions& b,
                   const std::vector<std::string>& findings,
                   const BootstrapOptions& options);

// Of recipe b minus recipe a, each trained with the same seeds.
struct RecipeDifference {
  std::string finding;  // empty: the mean over findings (mean_columns())
  size_t positives = 0;
  std::optional<double> value;  // mean over the seeds
  // 95 % for other patients of these networks alone, by resampling.
  std::optional<Interval> of_networks;
  // Of several seeds for another training and other patients, by
  // interval_over_seeds().
  std::optional<Interval> of_recipes;
  // Of the mean alone: the same of all comparisons that are made, together.
  std::optional<Interval> of_all_recipes;
};

struct RecipeComparison {
  size_t images = 0;  // that all networks have scored
  RecipeDifference mean;
  std::vector<RecipeDifference> findings;
};

// a[s] and b[s]: of the networks of seed s. Images, findings and errors as in
// compare(). `comparisons`: of recipes, of which this is one.
RecipeComparison compare_recipes(const std::vector<const Predictions*>& a,
                                 const std::vector<const Predictions*>& b,
                                 const BootstrapOptions& options,
                                 size_t comparisons = 1);

}  // namespace chexnet
