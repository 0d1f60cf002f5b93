// Small square drawings whose axes both go from 0 to 1, or to a smaller limit
// (ROC, precision-recall, reliability), and intervals on one axis. Colors are
// classes of the page's style (page.hpp), so they follow light, dark and print.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/curves.hpp"
#include "chexnet/eval/interval.hpp"

namespace chexnet {

class UnitPlot {
 public:
  // `title`: also for a screen reader.
  UnitPlot(const std::string& title, const std::string& x_label,
           const std::string& y_label, double limit = 1);
  void add_line(const CurvePoints& points, const std::string& style = "curve");
  // From corner to corner: chance of a ROC curve, truth of a reliability
  // diagram.
  void add_diagonal();
  void add_level(double y);  // a horizontal line
  void add_dot(double x, double y, double radius = 3.5);
  void add_bar(double x, const Interval& range);  // upright whiskers
  std::string svg() const;

 private:
  std::string px(double x) const;
  std::string py(double y) const;
  double limit_;
  std::string begin_, body_;
};

struct ForestRow {
  std::string name;
  std::optional<double> value;  // in 0..1
  std::optional<Interval> range;
  bool rough = false;  // few cases: drawn hollow
  std::string values;  // the text at the right
};
// Values and their intervals, one below the other, with a line at chance, 0.5.
std::string forest_plot(const std::string& title,
                        const std::vector<ForestRow>& rows);

}  // namespace chexnet
