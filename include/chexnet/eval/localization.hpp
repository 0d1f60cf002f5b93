// Whether heat maps are high where somebody drew a box.
//
// A case is an image and a finding with at least one box. Its map is scored in
// two ways:
//
// - Pointing game (Zhang et al., "Top-down neural attention by excitation
//   backprop", ECCV 2016), without a margin: the map's highest point is in one
//   of the boxes.
// - IoU, as in ChestX-ray8 (Wang et al., CVPR 2017): the map, at the size of
//   the network's input, is stretched to 0 - 255 and cut at 60 and at 180; a
//   box is put around each region of either (neighbors are the eight around a
//   pixel). The case's IoU is the largest of one of these with one of the
//   case's boxes; it counts where this is at least T, T = 0.1 ... 0.7. Many
//   boxes of a map make a hit likelier, so their number is a figure too.
//
// Every case counts. Where the network did not find the finding, its map has
// nothing to explain, so the pointing game is also told of the cases that the
// network calls positive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chexnet/data/boxes.hpp"
#include "chexnet/data/image/heat_map.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/eval/decision_rules.hpp"
#include "chexnet/eval/figures.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

inline constexpr std::array kIouThresholds = {0.1, 0.2, 0.3, 0.4,
                                              0.5, 0.6, 0.7};

// The boxes of one image and finding, and those of a set of images.
struct BoxedCase {
  uint32_t row = 0;    // of the manifest
  size_t finding = 0;  // of the manifest
  std::vector<FindingBox> boxes;
};
struct BoxedCases {
  std::vector<BoxedCase> cases;               // by row, then finding; each once
  size_t other_images = 0;                    // of the list, not among `rows`
  std::vector<std::string> unknown_findings;  // of the list, not of the network
};
// Boxes of `rows` of the manifest and of its findings, whatever the table says
// of the label: somebody saw the finding and drew the box.
BoxedCases boxed_cases(std::span<const FindingBox> boxes,
                       const Manifest& manifest,
                       std::span<const uint32_t> rows);

// The picture that boxes were drawn on, pixels.
struct PictureSize {
  int width = 0, height = 0;
};
struct MapScore {
  enum class State {
    kScored,
    kDamaged,  // no picture, so no map
    kOutside,  // no box of the case has an area within the picture
  };
  State state = State::kDamaged;
  int cut_boxes = 0;  // that reached out of the picture by more than a pixel
  bool pointed = false;
  double iou = 0;
  int map_boxes = 0;    // that were put around regions of the map
  bool called = false;  // positive, by mark_called
};
// Boxes are cut at the picture's edge. `input`: side of the network's input.
MapScore score_map(const HeatMap& map, std::span<const FindingBox> boxes,
                   PictureSize picture, int input);
// The boxes around the map's regions.
std::vector<Box> boxes_of_map(const HeatMap& map, int input);

// Sets `called` of each score: whether the case's probability is at least
// Youden's threshold of its finding.
void mark_called(std::span<MapScore> scores, const BoxedCases& asked,
                 const Manifest& manifest, const Predictions& predictions,
                 const DecisionRules& rules);

struct FindingLocalization {
  std::string finding;
  size_t cases = 0, called = 0;
  Estimate pointing, pointing_of_called;
  std::array<Estimate, kIouThresholds.size()> iou_at{};  // fraction of cases
  double mean_iou = 0, boxes_per_map = 0;
  bool few_cases() const { return cases < kFewPositives; }
  bool few_called() const { return called < kFewPositives; }
};

// The findings of a mean: each has the same weight, however few its cases.
struct FindingsInMean {
  size_t findings = 0;
  size_t few = 0;  // of these, with few cases
};

struct Localization {
  std::vector<FindingLocalization> findings;  // that have a case
  // Over these; a resample counts where all have one. Of those called positive:
  // over the findings with such a case. Without an interval where one of them
  // is of fewer than kLeastPatients.
  Estimate mean_pointing, mean_pointing_of_called;
  std::array<Estimate, kIouThresholds.size()> mean_iou_at{};
  bool knows_called = false;  // mark_called had thresholds
  size_t cases = 0, images = 0;
  // Cases that have no score, and boxes that were cut.
  size_t damaged = 0, outside = 0, cut_boxes = 0;
  BoxedCases asked;
  uint32_t patients = 0;  // of the images with a case; 0 = not known
  FindingsInMean in_mean() const;
  FindingsInMean in_mean_of_called() const;
};

// `scores`: of asked.cases, in their order. Intervals are of patients, as those
// of AUROC.
Localization localization_of(BoxedCases asked, std::span<const MapScore> scores,
                             const Manifest& manifest,
                             const BootstrapOptions& options);

}  // namespace chexnet
