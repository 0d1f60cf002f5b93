// launch.bucket_mb: auto. Small buckets leave early but pay a start each; large
// ones end late. The first steps of a run try some sizes; all ranks take the
// one whose steps were shortest on the slowest rank. The choice goes into the
// checkpoint, because it changes the order of sums.
#pragma once

#include <vector>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

class BucketTuner {
 public:
  static constexpr int kStepsEach = 8;  // the first two of each warm up

  // The size for the steps that follow, MB; after `done` the choice.
  double bucket_mb() const { return candidates_[static_cast<size_t>(at_)]; }
  bool done() const { return done_; }
  // Call after each step with its time. True when bucket_mb() changed.
  // Collective when a round of trials ends.
  bool step(double seconds, Communicator& comm);

 private:
  std::vector<double> candidates_ = {1, 2, 4, 8, 16, 32};
  std::vector<double> times_;    // of the present candidate's steps
  std::vector<double> medians_;  // [candidate]
  int at_ = 0;
  bool done_ = false;
};

}  // namespace chexnet
