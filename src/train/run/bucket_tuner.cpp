// The trial, of 6 sizes x 8 steps; w = warm-up, not counted:
//
//   | 1 MB: w w s s s s s s | 2 MB: w w s s s s s s | … | 32 MB: … |
//                                          all ranks: max of the medians
//
// The median forgives single disturbed steps. The maximum over ranks is taken
// before the minimum over sizes: a step is as long as its slowest rank's.
#include "chexnet/train/run/bucket_tuner.hpp"

#include <algorithm>
#include <utility>

#include "chexnet/core/median.hpp"

namespace chexnet {

bool BucketTuner::step(double seconds, Communicator& comm) {
  if (done_) return false;
  constexpr int kWarmUp = 2;
  times_.push_back(seconds);
  if (times_.size() < kStepsEach) return false;
  times_.erase(times_.begin(), times_.begin() + kWarmUp);
  medians_.push_back(median(std::move(times_)));
  times_.clear();
  if (medians_.size() < candidates_.size()) {
    ++at_;
    return true;
  }
  comm.all_reduce(medians_, ReduceOp::kMax);
  at_ = static_cast<int>(std::ranges::min_element(medians_) - medians_.begin());
  done_ = true;
  return true;
}

}  // namespace chexnet
