// The inner loops of the bootstrap: kLanes resamples at once, one in each lane
// of a vector. All sums are of integers; a lane's floating-point sum has one
// order. So the result does not depend on the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chexnet/eval/ranked_cases.hpp"

namespace chexnet {

inline constexpr size_t kLanes = 64;

// How often a patient was drawn, [patients][kLanes]; a cache line for each
// patient. 8 bits suffice: of n patients one is drawn n times at most, and for
// n > 255 the chance of 256 times is below 1 / 256!.
using DrawCounts = std::vector<uint8_t>;

// Figures of kLanes resamples; NaN where a lane has no positive or no negative.
struct LaneFigures {
  double auroc[kLanes], average_precision[kLanes];
};

// `column.cases` hold patients here, not cases.
LaneFigures figures_of_lanes(const RankedCases& column,
                             const DrawCounts& counts);

}  // namespace chexnet
