// Heat maps of some images of a data set, on any number of ranks: what
// `evaluate --boxes`, `predict --heatmaps` and a run's examples share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "chexnet/data/image/gray_image.hpp"
#include "chexnet/data/image/heat_map.hpp"
#include "chexnet/model/heat_maps.hpp"
#include "chexnet/report/heat_map_overlay.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

// One image, for the length of a call.
struct MappedImage {
  uint32_t row = 0;                    // of the manifest
  std::span<const double> logits;      // [K]
  std::function<HeatMap(size_t)> map;  // of finding k, with its area
  std::function<double(size_t)> bias;  // HeatMaps::bias of finding k
  const GrayImage& picture;  // as it is stored: at full size, or of a pack
};

struct HeatMapPass {
  HeatMapKind kind;
  std::string what;               // for the progress line: "heat maps"
  bool absent_is_damage = false;  // what is gone by now is left out, too
};

struct MapAbove {
  size_t finding = 0;
  double threshold = 0.5;
  HeatMapMethod method = HeatMapKind{}.method;
};
// A PNG with the map over its picture; `look`'s unit and its text for a map
// without an area are the method's. A class
// activation map counts from the threshold: with the bias, its mean is the
// logit, so where it is above 0 the picture alone would be called positive, and
// of one that is called positive some part is.
void write_overlay(const std::filesystem::path& path, const MappedImage& image,
                   const MapAbove& shown, OverlayOptions look);

// Collective. Calls `use` for each of `rows` once, on the rank that computed
// it, in the order of rows of that rank; not for a damaged image, which is
// logged, nor for one that `pass` takes for damaged. Preprocessing and batch
// are those of an evaluation, so logits and, with the engine, maps have the
// bits that any other number of ranks gives them. Every rank calls `stop`
// before each batch; false where any says yes.
bool for_each_map(const RunContext& run, const std::vector<uint32_t>& rows,
                  const HeatMapPass& pass,
                  const std::function<void(const MappedImage&)>& use,
                  const std::function<bool()>& stop);

}  // namespace chexnet
