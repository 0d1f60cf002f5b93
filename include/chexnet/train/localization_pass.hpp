// Heat maps of a split against boxes, on any number of ranks.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "chexnet/eval/localization.hpp"
#include "chexnet/train/heat_map_pass.hpp"

namespace chexnet {

// Collective. The scores of `cases`, in their order, the same on every rank;
// nothing where any rank was asked to stop. `side`: pixels of the square
// pictures that the boxes were drawn on; 0: each picture's own. ConfigError
// where that is asked of a pack, which does not know it.
std::optional<std::vector<MapScore>> score_boxes(
    const RunContext& run, const std::vector<BoxedCase>& cases, int side,
    const HeatMapKind& kind, const std::function<bool()>& stop);

}  // namespace chexnet
