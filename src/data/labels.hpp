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

// [N, from.size()]: columns `from` of entries [N, width], not labeled for
// kNoColumn.
constexpr std::size_t kNoColumn = std::string::npos;
std::vector<float> columns_of(const std::vector<float>& entries,
                              std::size_t width,
                              const std::vector<std::size_t>& from);

// From what the entries in manifest.labels say to labels for training and,
// where these differ, for scoring.
void apply_policies(Manifest& manifest, const DataConfig& config,
                    const EvalConfig& eval);

}  // namespace chexnet
