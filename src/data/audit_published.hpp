// The published numbers of data sets, to know a table by.
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

// Fills known and known_differs: counts of NIH's ChestX-ray14 by split and
// finding, sizes of the other data sets; nothing of several tables.
void compare_with_published(const ManifestConfig& tables,
                            const Manifest& manifest, const Splits& splits,
                            Audit& audit);

}  // namespace chexnet
