// Class-balanced sampling (train.sampling: rare_first): images with a rare
// finding are seen more often, others less, and an epoch stays as long as it
// is.
#pragma once

#include <cstdint>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "chexnet/data/manifest.hpp"

namespace chexnet {

// [rows] How often each is wanted, relative to the others: 1 / sqrt(f), f the
// fraction of rows that have the row's rarest positive finding; for a row
// without one, the fraction of such rows. The square root is that of repeat
// factor sampling (Gupta et al., LVIS, CVPR 2019).
std::vector<double> balanced_weights(const Manifest& manifest,
                                     const std::vector<uint32_t>& rows);

// As many draws as there are rows: row i rows.size() * weights[i] / sum times,
// rounded up or down at random (systematic sampling), in random order.
std::vector<uint32_t> weighted_order(const std::vector<uint32_t>& rows,
                                     const std::vector<double>& weights,
                                     Random& random);

}  // namespace chexnet
