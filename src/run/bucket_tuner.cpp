#include "chexnet/run/bucket_tuner.hpp"

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
