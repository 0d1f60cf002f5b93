// Counts the damaged images of training, and says when there are too many. An
// image counts for the epoch it is in; an epoch that a run was resumed in
// counts from there.
#pragma once

#include <cstdint>

#include "chexnet/data/damage.hpp"
#include "chexnet/data/loader.hpp"

namespace chexnet {

class DamageCounter {
 public:
  // Of one step. A batch may span the end of an epoch.
  struct Count {
    double this_epoch = 0, next_epoch = 0;
    double all() const { return this_epoch + next_epoch; }
  };
  // `images` of an epoch, `batch` of a step of all ranks.
  DamageCounter(DamagePolicy policy, uint64_t images, uint64_t batch)
      : policy_(policy), images_(images), batch_(batch) {}

  // This rank's part of the step that begins at sample `position` of the
  // training order.
  Count in(const Batch& batch, uint64_t position) const;
  // The sum over all ranks: every rank holds the same counts and throws the
  // same DataError, when more of an epoch are damaged than the policy allows,
  // or all images of a step.
  void add(const Count& damaged, uint64_t position);

 private:
  const DamagePolicy policy_;
  const uint64_t images_, batch_;
  uint64_t epoch_ = 0;
  Count so_far_;  // of epoch_ and the one after
};

}  // namespace chexnet
