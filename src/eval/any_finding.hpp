// "Some disease is present" as a further finding.
#pragma once

#include <vector>

#include "chexnet/eval/predictions.hpp"

namespace chexnet {

// The mean logit of the columns that are diseases (neither "No Finding" nor
// "Support Devices"), which one strong finding moves more than a mean of
// probabilities would; and 1 where one of them is 1, 0 where all are 0, else
// NaN. Scores are to be probabilities. `columns`: of `predictions.findings`;
// without a disease among them all labels are NaN.
struct AnyFinding {
  std::vector<double> scores;  // [N], NaN = not scored
  std::vector<float> labels;   // [N], NaN = not known or not scored
};
AnyFinding any_finding(const Predictions& predictions,
                       const std::vector<size_t>& columns);

}  // namespace chexnet
