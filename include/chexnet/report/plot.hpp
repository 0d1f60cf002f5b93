// Line plots as SVG: inside an HTML page, or as a file of their own.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chexnet {

struct Curve {
  std::string name, color;
  std::vector<std::pair<double, double>> points;  // (x, y), finite
  std::vector<std::size_t> marked;  // points with a ring around them
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  bool from_zero = false;  // the y axis
  int digits = 3;          // of y
};

std::string svg_plot(const Plot& plot);  // empty when there are no points
// "#1f6fb2", … for curve i; readable on white and told apart without red and
// green alone.
std::string curve_color(std::size_t i);
std::string xml_escaped(const std::string& text);

}  // namespace chexnet
