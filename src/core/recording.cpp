// Each add() has a slot, which it alone writes; `whole` hands the slot to the
// readers.
#include "chexnet/core/recording.hpp"

#include <algorithm>

namespace chexnet {

void Recording::add(const TimelineEvent& event) {
  const size_t index = added_.fetch_add(1, std::memory_order_relaxed);
  if (index >= slots_.size()) return;
  Slot& slot = slots_[index];
  slot.event = event;
  slot.whole.store(true, std::memory_order_release);
}

std::vector<TimelineEvent> Recording::events() const {
  std::vector<TimelineEvent> events;
  const size_t used = std::min(added_.load(), slots_.size());
  for (size_t i = 0; i < used; ++i)
    if (slots_[i].whole.load(std::memory_order_acquire))
      events.push_back(slots_[i].event);
  return events;
}

size_t Recording::dropped() const {
  const size_t added = added_.load();
  return added - std::min(added, slots_.size());
}

}  // namespace chexnet
