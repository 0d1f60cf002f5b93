// predict --heatmaps: pictures of where a finding's score comes from.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/eval/predictions.hpp"
#include "chexnet/model/heat_maps.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

struct HeatMapOptions {
  std::string folder;                 // empty: none are wanted
  std::vector<std::string> findings;  // of every image; empty: by threshold
  double threshold = 0.5;             // least probability
  HeatMapKind kind{.shifts = 2};
};
// --heatmap-method and --heatmap-shifts, which need `wanted`.
void add_heat_map_kind(CLI::App& command, HeatMapKind& kind,
                       CLI::Option* wanted);
void add_heat_map_options(CLI::App& command, HeatMapOptions& options);

// Before the work: CheckpointError where the folder holds something already;
// ConfigError for a finding that the network does not know.
void check_heat_map_options(const HeatMapOptions& options,
                            const std::vector<std::string>& known);

// The pictures of an image: finding and file name.
using HeatMapFiles = std::vector<std::pair<std::string, std::string>>;

// Collective. Writes NUMBER_IMAGE_FINDING.png for the chosen findings of each
// scored image, and heatmaps.csv (file,image,finding,probability) last. Returns
// the files by row of the prediction; the same on every rank. False in `second`
// where any rank was asked to stop.
std::pair<std::map<std::size_t, HeatMapFiles>, bool> write_heat_maps(
    const RunContext& run, const Predictions& predictions,
    const HeatMapOptions& options, const std::function<bool()>& stop);

}  // namespace chexnet
