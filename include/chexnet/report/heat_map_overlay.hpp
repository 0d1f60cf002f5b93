// A heat map drawn over the picture that it explains, with a legend, as PNG.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chexnet/data/image/gray_image.hpp"
#include "chexnet/data/image/heat_map.hpp"

namespace chexnet {

struct OverlayOptions {
  std::string caption;         // "Mass  0.83"; ASCII, else '?'
  std::string unit = "logit";  // of the map's values; may be empty
  std::string nothing = "nothing raises the score";  // of a map without any
  // Pixels; a wider picture is shrunk to it. 0: the picture keeps its size.
  int most_width = 0;
};

// The most_width with which neither side of what overlay_png() writes of
// `picture`, its legend included, has more than `most` pixels: of at least
// kLeastOverlaySide, as the legend takes 45; 0 for no limit.
int width_within(int most, const GrayImage& picture);
inline constexpr int kLeastOverlaySide = 96;

// Where the map is above 0 (there it raises the score), the picture is covered
// by viridis, which people with any color vision, and gray printers, see as
// ever brighter: the higher, the less of the picture shows through. 0 is
// transparent, the map's maximum the end of the scale. A thin frame surrounds
// the map's area; the network did not see what is outside. Below the picture,
// and covering none of it, are the caption, the scale with the map's maximum,
// and "research use". The map is enlarged bilinearly.
std::vector<std::byte> overlay_png(const GrayImage& picture, const HeatMap& map,
                                   const OverlayOptions& options);

}  // namespace chexnet
