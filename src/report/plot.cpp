#include "chexnet/report/plot.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <set>

#include "chexnet/core/text_format.hpp"

namespace chexnet {

std::string xml_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string curve_color(std::size_t i) {
  static constexpr std::array<const char*, 6> kColors = {
      "#1f6fb2", "#c2571a", "#2a7f3f", "#7a4fa3", "#8a6d00", "#444c54"};
  return kColors[i % kColors.size()];
}

// In the units of the view box, 640 wide:
//
//   (64,16) title                     y_label (628,16)
//   58 |  y max ------------------------------ |  28 = kTop
//      |                                       |
//      |  y min ------------------------------ |  floor
//        64   ticks of x                    628
//                     x_label                       floor + 32
//        legend: three curves per row               floor + 50
//
// y grows downwards in SVG, so py() turns it around.
std::string svg_plot(const Plot& plot) {
  constexpr double kWidth = 640, kLeft = 64, kTop = 28, kRight = 12;
  const double legend_rows = static_cast<double>((plot.curves.size() + 2) / 3);
  const double bottom = 46, height = 240 + 16 * legend_rows;
  const double floor = height - bottom - 16 * legend_rows;
  double x_min = 1e300, x_max = -1e300, y_min = plot.from_zero ? 0 : 1e300,
         y_max = -1e300;
  for (const auto& curve : plot.curves) {
    for (const auto& [x, y] : curve.points) {
      assert(std::isfinite(x) && std::isfinite(y));
      x_min = std::min(x_min, x);
      x_max = std::max(x_max, x);
      y_min = std::min(y_min, y);
      y_max = std::max(y_max, y);
    }
  }
  if (x_min > x_max) return {};
  // One point, or a flat line: an axis needs some length.
  if (x_max - x_min < 1e-9) x_max = x_min + 1;
  if (y_max - y_min < 1e-9) y_max = y_min + 1e-3;
  const auto px = [&](double x) {
    return fixed(
        kLeft + (x - x_min) / (x_max - x_min) * (kWidth - kLeft - kRight), 1);
  };
  const auto py = [&](double y) {
    return floor - (y - y_min) / (y_max - y_min) * (floor - kTop);
  };
  const auto text = [](const std::string& x, double y, const char* anchor,
                       const std::string& what, const std::string& more = "") {
    return "<text x=\"" + x + "\" y=\"" + fixed(y, 1) + "\" text-anchor=\"" +
           anchor + "\"" + more + ">" + xml_escaped(what) + "</text>";
  };
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 " +
      fixed(height, 0) + "\" role=\"img\" aria-label=\"" +
      xml_escaped(plot.title) +
      "\" font-family=\"system-ui,sans-serif\" font-size=\"11\" "
      "fill=\"#1b1f23\">"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>" +
      text("64", 16, "start", plot.title,
           " font-size=\"13\" font-weight=\"600\"");
  // Few points are measurements: the axis names theirs.
  std::set<double> ticks;
  for (const auto& curve : plot.curves)
    for (const auto& [x, y] : curve.points) ticks.insert(x);
  if (ticks.size() > 12) {
    ticks.clear();
    for (int i = 0; i <= 4; ++i) ticks.insert(x_min + (x_max - x_min) * i / 4);
  }
  for (const double x : ticks)
    svg += text(px(x), floor + 16, "middle",
                fixed(x, x == static_cast<int>(x) ? 0 : 1));
  for (int i = 0; i <= 4; ++i) {
    const double y = y_min + (y_max - y_min) * i / 4;
    svg += "<line x1=\"64\" x2=\"628\" y1=\"" + fixed(py(y), 1) + "\" y2=\"" +
           fixed(py(y), 1) + "\" stroke=\"#e3e6e8\"/>" +
           text("58", py(y) + 4, "end", fixed(y, plot.digits));
  }
  svg += text("346", floor + 32, "middle", plot.x_label) +
         text("628", 16, "end", plot.y_label);
  for (std::size_t c = 0; c < plot.curves.size(); ++c) {
    const Curve& curve = plot.curves[c];
    if (curve.points.empty()) continue;
    svg += "<polyline fill=\"none\" stroke=\"" + curve.color +
           "\" stroke-width=\"1.6\" points=\"";
    for (const auto& [x, y] : curve.points)
      svg += px(x) + "," + fixed(py(y), 1) + " ";
    svg += "\"/>";
    if (curve.points.size() <= 12)  // few points are measurements: show them
      for (const auto& [x, y] : curve.points)
        svg += "<circle cx=\"" + px(x) + "\" cy=\"" + fixed(py(y), 1) +
               "\" r=\"2.5\" fill=\"" + curve.color + "\"/>";
    for (const std::size_t m : curve.marked) {
      assert(m < curve.points.size());
      svg += "<circle cx=\"" + px(curve.points[m].first) + "\" cy=\"" +
             fixed(py(curve.points[m].second), 1) +
             "\" r=\"6\" fill=\"none\" stroke=\"" + curve.color +
             "\" stroke-width=\"1.6\"/>";
    }
    const double legend_y = floor + 50 + 16 * static_cast<double>(c / 3);
    svg +=
        text(fixed(kLeft + 190 * static_cast<double>(c % 3), 0), legend_y,
             "start", "\u2014 " + curve.name, " fill=\"" + curve.color + "\"");
  }
  return svg + "</svg>";
}

}  // namespace chexnet
