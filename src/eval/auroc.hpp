// Area under the ROC curve = P(score of a positive > score of a negative) +
// half of P(equal), from ranks (Mann-Whitney).
#pragma once

#include <optional>
#include <span>

namespace chexnet {

// labels: 1 positive, 0 negative, NaN left out. Empty when either class has no
// member, or when a labeled case has NaN as its score.
std::optional<double> auroc(std::span<const double> scores,
                            std::span<const float> labels);

}  // namespace chexnet
