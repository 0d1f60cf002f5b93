// A rank that is slower than the others for long enough, and why. In
// data-parallel training everybody waits for the slowest, so we compare a
// rank's own time per step: all but waiting for others.
#pragma once

#include <deque>
#include <string>
#include <vector>

namespace chexnet {

// Of one rank over a window of steps; seconds are medians of a step.
struct RankPace {
  double own_s = 0;   // computing and waiting for data
  double data_s = 0;  // of that, waiting for data
  // CPU time as a fraction of what its threads could use in that time (CPU
  // runs).
  double cpu_fraction = 1;
  double throttled = 0;  // 1: its GPU's clock was held down
};

class StragglerWatch {
 public:
  // Over the last `windows` the mean ratio of a rank's own time to the median
  // of the others must reach `ratio`, and all windows but one `each`: a short
  // disturbance, on either side, neither makes nor hides a straggler. It has
  // recovered below `recovered`.
  struct Options {
    double ratio = 1.35, each = 1.2, recovered = 1.15;
    double least_excess_s = 1e-3;  // smaller differences are noise of the clock
    int windows = 4;
  };
  explicit StragglerWatch(Options options) : options_(options) {}

  struct Alarm {
    int rank = 0;
    double ratio = 0, own_s = 0, others_s = 0;
    std::string cause;
  };
  // `paces` by rank. Returns those that just became stragglers; one that
  // recovered may again.
  std::vector<Alarm> add(const std::vector<RankPace>& paces);

 private:
  Options options_;
  struct Rank {
    std::deque<double> ratios;  // of the last windows
    bool slow = false;
  };
  std::vector<Rank> ranks_;
};

}  // namespace chexnet
