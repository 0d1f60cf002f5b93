// Cells of a manifest: their text, and their values in training and scoring.
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

// The value of an uncertain cell under `smooth`: the mean of the interval
// 0.55..0.85 that Pham et al. (Neurocomputing 2021, "Interpreting chest X-rays
// via CNNs that exploit hierarchical disease dependencies and uncertainty
// labels") draw such labels from. The loss is linear in the label, so the mean
// has the same expected gradient as the draws.
constexpr float kSmoothLabel = 0.7f;

// From the cells in manifest.labels to labels for training and, where these
// differ, for scoring. `known`: findings of all tables of the run, of which
// data.uncertain may name any.
void apply_policies(Manifest& manifest, ManifestFormat format,
                    const DataConfig& config, const EvalConfig& eval,
                    const std::vector<std::string>& known);

}  // namespace chexnet
