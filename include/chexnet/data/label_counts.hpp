// How many labeled entries each finding has on some rows, by the labels of
// training or of scoring.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/data/manifest.hpp"

namespace chexnet {

enum class Labels { kTraining, kScored };

struct LabelCounts {
  std::vector<size_t> positives, negatives;  // [K]
};
LabelCounts count_labels(const Manifest& manifest,
                         const std::vector<uint32_t>& rows, Labels which);

// "no positive of Hernia; no negative of No Finding" among `findings`; empty
// when each has both.
std::string one_sided_text(const Manifest& manifest, const LabelCounts& counts,
                           const std::vector<std::string>& findings);

}  // namespace chexnet
