#include "chexnet/report/overlap_figure.hpp"

#include <algorithm>
#include <cassert>

#include "chexnet/core/text_format.hpp"
#include "svg.hpp"

namespace chexnet {

// In the units of the view box, twice, one below the other:
//
//           title
//   loading  [1]     [2]
//  training     [ 1 ]   [ 2 ]
//                           596 ms
namespace {

constexpr double kFigureWidth = 480, kFigureLeft = 62, kFigureEnd = 472;
constexpr double kTitleHeight = 16, kRowHeight = 22, kBoxHeight = 18,
                 kPanelHeight = 92;
constexpr int kStepsInTurn = 4;  // of those that load and train in turn
// What takes no less than its longer part makes at most twice as many.
constexpr int kMostSteps = 2 * kStepsInTurn + 1;
// Boxes as narrow as this have no number.
constexpr double kNarrow = 14;

class Panel {
 public:
  // `shown` milliseconds are as wide as the picture.
  Panel(double top, double shown, const std::string& title)
      : top_(top), shown_(shown) {
    svg_ =
        svg_text(fixed(kFigureLeft, 1), top + kTitleHeight - 3, "start",
                 title) +
        svg_text(fixed(kFigureLeft - 6, 1), y_of(0) + 13, "end", "loading") +
        svg_text(fixed(kFigureLeft - 6, 1), y_of(1) + 13, "end", "training") +
        svg_text(fixed(kFigureEnd, 1), y_of(2) + 11, "end",
                 fixed(shown, 0) + " ms");
  }

  // Of batch `number`, from `begin` ms on; what lies beyond the end is cut.
  void add(int row, int number, double begin, double ms) {
    const double left = x_of(begin), right = x_of(begin + ms);
    if (right <= left) return;
    svg_ += "<g class=\"c" + std::to_string(row) + "\" color=\"" +
            (row == 0 ? "#1f6fb2" : "#b34a12") + "\"><rect x=\"" +
            fixed(left, 1) + "\" y=\"" + fixed(y_of(row), 1) + "\" width=\"" +
            fixed(right - left, 1) + "\" height=\"" + fixed(kBoxHeight, 0) +
            "\" fill=\"currentColor\" fill-opacity=\"0.25\" "
            "stroke=\"currentColor\"/></g>";
    if (right - left > kNarrow)
      svg_ += svg_text(fixed((left + right) / 2, 1), y_of(row) + 13, "middle",
                       std::to_string(number));
  }

  const std::string& svg() const { return svg_; }

 private:
  double x_of(double ms) const {
    return kFigureLeft +
           std::clamp(ms / shown_, 0.0, 1.0) * (kFigureEnd - kFigureLeft);
  }
  double y_of(int row) const {
    return top_ + kTitleHeight + 4 + row * kRowHeight;
  }

  double top_, shown_;
  std::string svg_;
};

std::string step_text(double ms) { return fixed(ms, ms < 10 ? 1 : 0) + " ms"; }

// A step after the other takes `step` ms; the first one has its batch after
// `loading`.
Panel panel_of(double top, double shown, double step, const OverlapTimes& times,
               const std::string& title) {
  Panel panel(top, shown, title);
  const double loading = std::min(times.loading, step);
  for (int k = 0; k < kMostSteps; ++k) {
    const double begin = times.loading + k * step;
    panel.add(0, k + 1, begin - loading, loading);
    panel.add(1, k + 1, begin, times.computing);
  }
  return panel;
}

}  // namespace

std::string svg_overlap(const OverlapTimes& times) {
  assert(times.loading > 0 && times.computing > 0 && times.step > 0);
  const double in_turn = times.loading + times.computing;
  const double shown = kStepsInTurn * in_turn;
  return svg_begin(kFigureWidth, 2 * kPanelHeight,
                   "Loading and training, one after the other and at once") +
         panel_of(
             0, shown, in_turn, times,
             "Without pipelining, computed: " + step_text(in_turn) + " a step")
             .svg() +
         panel_of(kPanelHeight, shown, times.step, times,
                  "As measured: " + step_text(times.step) + " a step")
             .svg() +
         "</svg>";
}

}  // namespace chexnet
