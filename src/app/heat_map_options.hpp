// predict --heatmaps: pictures of where a finding's score comes from.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/model/heat_maps.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

struct HeatMapOptions {
  std::string folder;                 // empty: none are wanted
  std::vector<std::string> findings;  // of every image; empty: by threshold
  HeatMapKind kind{.shifts = 2};
  int most_pixels = 1024;  // of the longer side, or 0: as the picture is
};
// --heatmap-method.
void add_heat_map_kind(CLI::App& command, HeatMapKind& kind);
// Refuses an option of heat maps without the one that wants some.
void require_heat_maps(const CLI::App& command, const std::string& wanted_by);
void add_heat_map_options(CLI::App& command, HeatMapOptions& options);

// Before the work: ConfigError for a finding that the network does not know.
void check_heat_map_options(const HeatMapOptions& options,
                            const std::vector<std::string>& known);

// The pictures of an image: finding and file name.
using HeatMapFiles = std::vector<std::pair<std::string, std::string>>;

// Which pictures there will be follows from the scores, row by row, the same on
// every rank; they are drawn when all rows are known. The folder is there and
// empty (predict_folders.hpp).
class HeatMapFolder {
 public:
  // `findings` [K]: the network's. `thresholds` [K] say what is wanted where
  // no findings were named.
  HeatMapFolder(const HeatMapOptions& options,
                std::vector<std::string> findings,
                std::vector<double> thresholds);
  // Of `row` of the split, whose image is scored. Returns its pictures-to-be.
  HeatMapFiles choose(size_t row, const std::string& image,
                      std::span<const double> probabilities);
  // Collective. Writes NUMBER_IMAGE_OUTPUT_FINDING.png for what was chosen, and
  // heatmaps.csv (file,image,finding,probability) last. False where any rank
  // was asked to stop.
  bool write(const RunContext& run, const std::function<bool()>& stop) const;
  // How many there are, and where.
  std::string text() const;

 private:
  struct Picture {
    size_t finding;
    double probability;
    std::string file;
  };
  struct Row {
    std::string image;
    std::vector<Picture> pictures;
  };
  bool is_wanted(size_t finding, double probability) const;
  void write_list() const;

  const HeatMapOptions& options_;
  std::vector<std::string> findings_;
  std::vector<double> thresholds_;  // [K]
  std::vector<size_t> named_;       // of findings_
  std::map<size_t, Row> rows_;
};

}  // namespace chexnet
