// The curves behind a finding's figures, for drawing: one point per threshold,
// from the highest score down.
#pragma once

#include <utility>
#include <vector>

#include "chexnet/eval/ranked_cases.hpp"

namespace chexnet {

using CurvePoints = std::vector<std::pair<double, double>>;  // (x, y), 0..1

// x: 1 - specificity, y: sensitivity, from (0, 0) to (1, 1); a straight line
// where positives and negatives have one score. No points without a positive
// or without a negative.
CurvePoints roc_curve(const RankedCases& ranked);
// x: sensitivity (recall), y: positive predictive value (precision). Steps
// whose area is the average precision, as that takes no value between two
// thresholds. No points where roc_curve has none.
CurvePoints precision_recall_curve(const RankedCases& ranked);

// The same curve for the eye: without points closer than `cell` in both
// directions to the last one that is kept. Ends stay.
CurvePoints thinned(const CurvePoints& points, double cell);

}  // namespace chexnet
