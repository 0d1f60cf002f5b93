// Cells of a manifest: what they say, and what training and scoring make of
// them.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/data/manifest.hpp"

namespace chexnet {

// A cell before any policy: 1, 0, blank (NaN) or uncertain.
constexpr float kUnlabeled = std::numeric_limits<float>::quiet_NaN();
constexpr float kUncertain = -1;

// What `smooth` makes of an uncertain cell: the mean of the interval 0.55..0.85
// that Pham et al. (Neurocomputing 2021, "Interpreting chest X-rays via CNNs
// that exploit hierarchical disease dependencies and uncertainty labels") draw
// such labels from. The loss is linear in the label, so the mean has the same
// expected gradient as the draws.
constexpr float kSmoothLabel = 0.7f;

// From what the entries in manifest.labels say to labels for training and,
// where these differ, for scoring. `known`: findings of all tables of the run,
// of which data.uncertain may name any.
void apply_policies(Manifest& manifest, ManifestFormat format,
                    const DataConfig& config, const EvalConfig& eval,
                    const std::vector<std::string>& known);

}  // namespace chexnet
