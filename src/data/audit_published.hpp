// The published numbers of NIH's ChestX-ray14, to know a table by.
#pragma once

#include <string>
#include <vector>

#include "chexnet/data/audit.hpp"

namespace chexnet {

// Counts of one split: training labels where its name is "train", those that
// are scored elsewhere.
Audit::SplitCounts count_split(const Manifest& manifest,
                               const std::string& name,
                               const std::vector<uint32_t>& rows);

// Fills known and known_differs.
void compare_with_nih(const Manifest& manifest, const Splits& splits,
                      Audit& audit);

}  // namespace chexnet
