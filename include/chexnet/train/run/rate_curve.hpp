// The loss of a training whose learning rate rises from step to step, and the
// rate to begin with (Smith, WACV 2017; as Lightning's and fastai's lr_find).
#pragma once

#include <cstddef>
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
  };
  // False where further steps would tell nothing: the loss is not finite, or
  // its moving average four times the least.
  bool add(double rate, double loss);
  const std::vector<Point>& points() const { return points_; }
  bool diverged() const { return diverged_; }
  // Of each point the mean loss of the points around it.
  std::vector<double> smoothed() const;
  // Half-way down from the first fifth's loss to the least smoothed one, about
  // where the loss falls fastest. Nothing where it does not fall by more than
  // the noise of that fifth.
  struct Suggestion {
    double rate = 0, lowest = 0;  // lowest: the rate of the least smoothed loss
  };
  std::optional<Suggestion> suggested() const;

 private:
  size_t half_window() const;
  std::vector<Point> points_;
  double average_ = 0, least_ = 0;  // moving average, and its least
  bool diverged_ = false;
};

}  // namespace chexnet
