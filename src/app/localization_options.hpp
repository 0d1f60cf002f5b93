// evaluate --boxes: heat maps against boxes that somebody drew.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/data/boxes.hpp"
#include "chexnet/data/split.hpp"
#include "chexnet/eval/decision_rules.hpp"
#include "chexnet/eval/localization.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/model/heat_maps.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

struct BoxOptions {
  std::string list;  // path, or empty
  int side = 0;      // pixels of the pictures they were drawn on; 0: as read
  HeatMapKind kind{.shifts = 2};
};
// They need a network, so `without` excludes them.
void add_box_options(CLI::App& command, BoxOptions& options,
                     CLI::Option* without);

// Nothing without --boxes. Before the work, as a list may be refused.
std::optional<std::vector<FindingBox>> read_listed_boxes(
    const BoxOptions& options, const S3Config& s3);

// Which images the network calls positive; rank 0.
struct CalledPositive {
  const Predictions& predictions;  // of the split
  const DecisionRules* rules;      // null: not known
};

// Collective; complete on rank 0, which also logs what has no score. Nothing
// where any rank was to stop. DataError where the list has no box of the split
// and of the network's findings.
std::optional<Localization> localize(const RunContext& run, const Split& split,
                                     const std::vector<FindingBox>& boxes,
                                     const BoxOptions& options,
                                     const CalledPositive& called,
                                     const std::function<bool()>& stop);

}  // namespace chexnet
