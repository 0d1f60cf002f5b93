#include "chexnet/report/plot.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "chexnet/core/text_format.hpp"
#include "svg.hpp"

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
    else if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t')
      out += "\ufffd";  // XML and HTML have no such character
    else
      out += c;
  }
  return out;
}

// In the units of the view box:
//
//       title                          y_label
//       |  y max ------------------------------ |  28 = kTop
//       |                                       |
//       |  y min ------------------------------ |  floor
//     kLeft   ticks of x                      kEnd
//                     x_label                       floor + 32
//         legend: two curves per row                floor + 52
//
// Colors are those of a plot without a page. Inside a report the page's style
// overrides them by class (src/report/page.cpp).
// y grows downwards in SVG, so py() turns it around.
namespace {

constexpr double kWidth = 480, kLeft = 52, kEnd = 470, kTop = 28;
constexpr double kBottom = 46, kRow = 16;  // below the axis; of the legend
constexpr size_t kCurvesPerRow = 2;
// Readable on white, told apart without red and green alone.
constexpr std::array<const char*, 6> kColors = {
    "#1f6fb2", "#b34a12", "#2a7f3f", "#7a4fa3", "#8a6d00", "#444c54"};
// So few points are measurements: each is shown.
constexpr size_t kFewPoints = 12;

struct Extent {
  double x_min, x_max, y_min, y_max;
};

// An axis from one round number to another.
struct Axis {
  double low, step;
  int steps;
  double high() const { return tick(steps); }
  double tick(int i) const { return low + step * i; }
  std::string text(int i) const {
    const double digits = -std::floor(std::log10(step) + kRounding);
    return fixed(tick(i), std::max(0, static_cast<int>(digits)));
  }
  static constexpr double kRounding = 1e-9;
};

// At most seven ticks, at multiples of 1, 2 or 5 times a power of ten.
Axis round_axis(double from, double to, double least_step) {
  constexpr double kMostSteps = 5;
  double step = least_step;
  if (to > from) {
    const double wanted = (to - from) / kMostSteps;
    const double power = std::pow(10, std::floor(std::log10(wanted)));
    for (const double factor : {10.0, 5.0, 2.0, 1.0})
      if (factor * power >= wanted * (1 - Axis::kRounding))
        step = std::max(least_step, factor * power);
  }
  const double first = std::floor(from / step + Axis::kRounding);
  const double last = std::ceil(to / step - Axis::kRounding);
  return {first * step, step, std::max(1, static_cast<int>(last - first))};
}

Extent extent_of(const Plot& plot) {
  Extent e{plot.x_from_zero ? 0 : 1e300, -1e300, plot.from_zero ? 0 : 1e300,
           -1e300};
  for (const auto& curve : plot.curves) {
    for (const auto& [x, y] : curve.points) {
      assert(std::isfinite(x) && std::isfinite(y));
      e.x_min = std::min(e.x_min, x);
      e.x_max = std::max(e.x_max, x);
      e.y_min = std::min(e.y_min, y);
      e.y_max = std::max(e.y_max, y);
    }
  }
  return e;
}

// Draws into a frame with the plot's extent, piece by piece.
class Drawing {
 public:
  Drawing(const Plot& plot, const Extent& extent)
      : plot_(plot),
        x_(round_axis(extent.x_min, extent.x_max, 1)),
        y_(round_axis(extent.y_min, extent.y_max, kLeastStep)) {}

  std::string svg() const {
    std::string svg = head() + x_axis() + y_axis() +
                      svg_text(fixed((kLeft + kEnd) / 2, 0), floor_ + 32,
                               "middle", plot_.x_label) +
                      svg_text(fixed(kEnd, 0), 16, "end", plot_.y_label);
    for (size_t c = 0; c < plot_.curves.size(); ++c)
      if (!plot_.curves[c].points.empty())
        svg += "<g class=\"c" + std::to_string(c % kColors.size()) +
               "\" color=\"" + kColors.at(c % kColors.size()) + "\">" +
               line_and_points(plot_.curves[c]) + legend(c) + "</g>";
    return svg + "</svg>";
  }

 private:
  std::string px(double x) const {
    const double part = (x - x_.low) / (x_.high() - x_.low);
    return fixed(kLeft + part * (kEnd - kLeft), 1);
  }
  double py(double y) const {
    return floor_ - (y - y_.low) / (y_.high() - y_.low) * (floor_ - kTop);
  }

  std::string head() const {
    return svg_begin(kWidth, height_, plot_.title) +
           svg_text(fixed(kLeft, 0), 16, "start", plot_.title,
                    " font-size=\"13\" font-weight=\"600\"");
  }

  std::string x_axis() const {
    std::string svg;
    for (int i = 0; i <= x_.steps; ++i)
      svg += svg_text(px(x_.tick(i)), floor_ + 16, "middle", x_.text(i));
    return svg;
  }

  std::string y_axis() const {
    std::string svg;
    for (int i = 0; i <= y_.steps; ++i) {
      const double y = py(y_.tick(i));
      svg += "<line class=\"rule\" x1=\"" + fixed(kLeft, 0) + "\" x2=\"" +
             fixed(kEnd, 0) + "\" y1=\"" + fixed(y, 1) + "\" y2=\"" +
             fixed(y, 1) + "\" stroke=\"#d0d7de\"/>" +
             svg_text(fixed(kLeft - 6, 0), y + 4, "end", y_.text(i));
    }
    return svg;
  }

  std::string line_and_points(const Curve& curve) const {
    std::string svg =
        "<polyline fill=\"none\" stroke=\"currentColor\" "
        "stroke-width=\"1.6\" points=\"";
    for (const auto& [x, y] : curve.points)
      svg += px(x) + "," + fixed(py(y), 1) + " ";
    svg += "\"/>";
    if (curve.points.size() <= kFewPoints)
      for (const auto& [x, y] : curve.points)
        svg += "<circle cx=\"" + px(x) + "\" cy=\"" + fixed(py(y), 1) +
               "\" r=\"2.5\" fill=\"currentColor\"/>";
    for (const size_t m : curve.marked) {
      assert(m < curve.points.size());
      svg += "<circle cx=\"" + px(curve.points[m].first) + "\" cy=\"" +
             fixed(py(curve.points[m].second), 1) +
             "\" r=\"6\" fill=\"none\" stroke=\"currentColor\" "
             "stroke-width=\"1.6\"/>";
    }
    return svg;
  }

  std::string legend(size_t c) const {
    const Curve& curve = plot_.curves[c];
    const double x = kLeft + 215 * static_cast<double>(c % kCurvesPerRow);
    const size_t row = c / kCurvesPerRow;
    const double y = floor_ + 52 + kRow * static_cast<double>(row);
    return svg_text(fixed(x, 0), y, "start", "\u2014 " + curve.name,
                    " fill=\"currentColor\"");
  }

  static constexpr double kLeastStep = 1e-3;  // of a flat line's axis
  const Plot& plot_;
  Axis x_, y_;
  const size_t legend_rows_ =
      (plot_.curves.size() + kCurvesPerRow - 1) / kCurvesPerRow;
  const double legend_height_ = kRow * static_cast<double>(legend_rows_);
  const double height_ = 250 + legend_height_;
  const double floor_ = height_ - kBottom - legend_height_;
};

}  // namespace

std::string svg_plot(const Plot& plot) {
  const Extent extent = extent_of(plot);
  if (extent.x_min > extent.x_max) return {};  // no point
  return Drawing(plot, extent).svg();
}

}  // namespace chexnet
