// The cases of one finding in the order of their scores, in the form that
// figures of ranks (AUROC, average precision) are summed up from, with any
// weight for each case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace chexnet {

// From the highest score down. A step ends with the positives of one score:
//
//   cases:  n n n n | n n | p p p | n | | p | n n n
//           above     tied  step 0      step 1  the rest
//
// `above` have a score between that of this step and that of the last one,
// `tied` the score of the step's positives. Negatives below the last positive
// follow the last step.
struct RankedCases {
  struct Step {
    uint32_t above_end, tied_end, positives_end;  // in `cases`
  };
  std::vector<uint32_t> cases;  // indices into the scores
  std::vector<Step> steps;
  size_t positives = 0, negatives = 0;
};

// labels: 1 positive, 0 negative, NaN left out. Empty when a labeled case has
// NaN as its score.
std::optional<RankedCases> rank_cases(std::span<const double> scores,
                                      std::span<const float> labels);

// The mean over positives of the precision at their score: the sum of
// (R_k - R_(k-1)) P_k over distinct scores, without interpolation, as
// scikit-learn's average_precision_score. Empty without a positive or without a
// negative.
std::optional<double> average_precision(const RankedCases& ranked);

}  // namespace chexnet
