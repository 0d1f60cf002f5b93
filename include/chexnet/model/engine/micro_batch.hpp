// One of the equal parts in which a rank computes its batch, handed to forward
// and backward. The parts' gradients and batch statistics add up: the first
// part stores, the others add.
#pragma once

#include <cstdint>
#include <functional>

namespace chexnet {

struct MicroBatch {
  int index = 0, count = 1;
  // Called by the last part's backward, each time it has written a parameter:
  // all gradients of the flat buffer below element `end` are complete. Ends
  // ascend. May be empty, may throw.
  std::function<void(int64_t end)> on_ready{};

  bool first() const { return index == 0; }
  bool last() const { return index + 1 == count; }
  // Called by whoever wrote the gradients below `end`.
  void written(int64_t end) const {
    if (last() && on_ready) on_ready(end);
  }
};

}  // namespace chexnet
