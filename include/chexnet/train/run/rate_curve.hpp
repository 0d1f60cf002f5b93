// The loss of a training whose learning rate rises from step to step, and the
// rate to begin with: where the loss falls fastest (Smith, WACV 2017; as
// Lightning's and fastai's lr_find).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace chexnet {

struct RateRange {
  double from = 1e-7, to = 1;
  int64_t steps = 100;
  // Of step 0 to steps - 1: by an equal factor from one to the next.
  double rate(int64_t step) const;
};

class RateCurve {
 public:
  struct Point {
    double rate = 0, loss = 0;
    double smoothed = 0;  // moving average, the first steps corrected
  };
  // False where no further step tells more: the loss is not finite, or four
  // times its least.
  bool add(double rate, double loss);
  const std::vector<Point>& points() const { return points_; }
  bool diverged() const { return diverged_; }
  // Of the least smoothed loss; null without points.
  const Point* lowest() const;
  // Where the smoothed loss falls fastest by the logarithm of the rate, up to
  // its lowest point; nothing where it does not fall.
  std::optional<double> suggested() const;

 private:
  std::vector<Point> points_;
  double average_ = 0;
  bool diverged_ = false;
};

}  // namespace chexnet
