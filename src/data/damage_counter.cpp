// A step may hold the end of one epoch and the beginning of the next: damage is
// counted for both, and when the epoch changes what was "next" becomes "this".
#include "chexnet/data/damage_counter.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"

namespace chexnet {

DamageCounter::Count DamageCounter::in(const Batch& batch,
                                       uint64_t position) const {
  Count count;
  if (batch.damaged == 0) return count;
  for (size_t i = 0; i < batch.errors.size(); ++i) {
    if (batch.errors[i].empty()) continue;
    const bool here = batch.samples[i].position / images_ == position / images_;
    ++(here ? count.this_epoch : count.next_epoch);
  }
  return count;
}

void DamageCounter::add(const Count& damaged, uint64_t position) {
  const uint64_t epoch = position / images_;
  if (epoch == epoch_ + 1) so_far_ = {so_far_.next_epoch, 0};
  if (epoch > epoch_ + 1) so_far_ = {};
  epoch_ = epoch;
  so_far_.this_epoch += damaged.this_epoch;
  so_far_.next_epoch += damaged.next_epoch;

  const char* look = ". Hint: chexnet-train inspect lists damaged images; ";
  if (damaged.all() >= static_cast<double>(batch_))
    throw DataError("[images] all {} images of a step are damaged{}{}", batch_,
                    look, policy_.hint());
  const auto most =
      static_cast<uint64_t>(std::max(so_far_.this_epoch, so_far_.next_epoch));
  if (most > policy_.allowed(images_))
    throw DataError("[images] epoch {}: {}{}{}", epoch + 1,
                    policy_.text(most, images_), look, policy_.hint());
}

}  // namespace chexnet
