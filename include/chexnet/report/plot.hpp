// Line plots as SVG: inside an HTML page, or as a file.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chexnet {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // (x, y), finite
  std::vector<size_t> marked;  // points with a ring around them
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  bool x_from_zero = false, from_zero = false;  // the x axis, the y axis
};

// Axes begin and end at round numbers.

std::string svg_plot(const Plot& plot);  // empty when there are no points
std::string xml_escaped(const std::string& text);

}  // namespace chexnet
