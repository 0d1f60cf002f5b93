#include "unit_plot.hpp"

#include <algorithm>
#include <cassert>

#include "chexnet/core/text_format.hpp"
#include "chexnet/report/plot.hpp"

namespace chexnet {

// In the units of the view box:
//
//   title
//   1 +-----------+        kSide wide and high, its corner at (kLeft, kTop)
//     |           |
//   0 +-----------+
//     0    0.5    1
//        x_label
namespace {

constexpr double kLeft = 30, kTop = 20, kSide = 150, kRight = 8, kBelow = 34;

std::string line(const std::string& style, const std::string& x1,
                 const std::string& y1, const std::string& x2,
                 const std::string& y2) {
  return "<line class=\"" + style + "\" x1=\"" + x1 + "\" y1=\"" + y1 +
         "\" x2=\"" + x2 + "\" y2=\"" + y2 + "\"/>";
}

std::string words(double x, double y, const char* anchor,
                  const std::string& what, const char* style = "soft") {
  return "<text class=\"" + std::string(style) + "\" x=\"" + fixed(x, 1) +
         "\" y=\"" + fixed(y, 1) + "\" text-anchor=\"" + anchor + "\">" +
         xml_escaped(what) + "</text>";
}

std::string view_box(double width, double height, const std::string& title) {
  return "<svg viewBox=\"0 0 " + fixed(width, 0) + " " + fixed(height, 0) +
         "\" role=\"img\" aria-label=\"" + xml_escaped(title) + "\">";
}

}  // namespace

std::string UnitPlot::px(double x) const {
  return fixed(kLeft + x / limit_ * kSide, 1);
}
std::string UnitPlot::py(double y) const {
  return fixed(kTop + (1 - y / limit_) * kSide, 1);
}

UnitPlot::UnitPlot(const std::string& title, const std::string& x_label,
                   const std::string& y_label, double limit)
    : limit_(limit) {
  assert(limit > 0 && limit <= 1);
  begin_ = view_box(kLeft + kSide + kRight, kTop + kSide + kBelow, title);
  begin_ += words(kLeft, 13, "start", y_label);
  for (const double part : {0.0, 0.5, 1.0}) {
    const double tick = part * limit;
    begin_ += line("rule", px(0), py(tick), px(limit), py(tick)) +
              line("rule", px(tick), py(0), px(tick), py(limit)) +
              words(kLeft - 4, kTop + (1 - part) * kSide + 4, "end",
                    number_text(tick)) +
              words(kLeft + part * kSide, kTop + kSide + 14, "middle",
                    number_text(tick));
  }
  begin_ += words(kLeft + kSide / 2, kTop + kSide + 29, "middle", x_label);
}

void UnitPlot::add_line(const CurvePoints& points, const std::string& style) {
  if (points.empty()) return;
  body_ += "<polyline class=\"" + style + "\" points=\"";
  for (const auto& [x, y] : points) body_ += px(x) + "," + py(y) + " ";
  body_.back() = '"';
  body_ += "/>";
}

void UnitPlot::add_diagonal() {
  body_ += line("chance", px(0), py(0), px(limit_), py(limit_));
}

void UnitPlot::add_level(double y) {
  body_ += line("chance", px(0), py(y), px(limit_), py(y));
}

void UnitPlot::add_dot(double x, double y, double radius) {
  body_ += "<circle class=\"dot\" cx=\"" + px(x) + "\" cy=\"" + py(y) +
           "\" r=\"" + fixed(radius, 1) + "\"/>";
}

void UnitPlot::add_bar(double x, const Interval& range) {
  body_ += line("whisker", px(x), py(range.low), px(x), py(range.high));
}

std::string UnitPlot::svg() const { return begin_ + body_ + "</svg>"; }

namespace {

constexpr double kForestWidth = 420, kRow = 22, kHead = 8, kFoot = 22;
constexpr double kAxisLeft = 128, kAxisRight = 290, kValues = 304;
constexpr double kChance = 0.5;

}  // namespace

std::string forest_plot(const std::string& title,
                        const std::vector<ForestRow>& rows) {
  double low = kChance;
  for (const auto& row : rows) {
    if (row.range) low = std::min(low, row.range->low);
    if (row.value) low = std::min(low, *row.value);
  }
  low = std::max(0.0, std::min(0.4, low - 0.02));
  const auto x_of = [low](double value) {
    const double part = (std::clamp(value, low, 1.0) - low) / (1 - low);
    return kAxisLeft + part * (kAxisRight - kAxisLeft);
  };
  const double floor = kHead + kRow * static_cast<double>(rows.size());
  std::string svg = view_box(kForestWidth, floor + kFoot, title);
  for (const double tick : {0.25, 0.5, 0.75, 1.0}) {
    if (tick < low) continue;
    const std::string x = fixed(x_of(tick), 1);
    svg += line(tick == kChance ? "chance" : "rule", x, fixed(kHead, 1), x,
                fixed(floor, 1)) +
           words(x_of(tick), floor + 15, "middle", number_text(tick));
  }
  double y = kHead + kRow / 2;
  for (const auto& row : rows) {
    svg += words(0, y + 4, "start", row.name, "ink") +
           words(kValues, y + 4, "start", row.values, "ink");
    const std::string at = fixed(y, 1);
    if (row.range)
      svg += line("whisker", fixed(x_of(row.range->low), 1), at,
                  fixed(x_of(row.range->high), 1), at);
    if (row.value)
      svg += "<circle class=\"" + std::string(row.rough ? "hollow" : "dot") +
             "\" cx=\"" + fixed(x_of(*row.value), 1) + "\" cy=\"" + at +
             "\" r=\"4\"/>";
    y += kRow;
  }
  return svg + "</svg>";
}

}  // namespace chexnet
