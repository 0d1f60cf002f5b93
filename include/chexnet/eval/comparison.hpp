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
  // Of the means over the findings that have an AUROC, without "No Finding".
  Estimate mean_difference;
  std::optional<double> mean_p;
};

// Images meet by name, findings as in findings.hpp; `findings` as in score(),
// of those that both have. Labels and patients are those of `a`. Of many
// findings some differ by chance: one of twenty at p = 0.05. DataError when no
// image or no finding is in both, or a label differs.
Comparison compare(const Predictions& a, const Predictions& b,
                   const std::vector<std::string>& findings,
                   const BootstrapOptions& options);

}  // namespace chexnet
