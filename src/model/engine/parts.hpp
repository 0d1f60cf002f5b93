// How passes add up, so that results do not depend on threads: a cut that the
// shapes alone decide, sums for each part, parts added in order.
#pragma once

#include <algorithm>

#include "chexnet/model/engine/memory_plan.hpp"
#include "kernels/kernels.hpp"

namespace chexnet {

// `count` items in `parts`.
struct Cut {
  int64_t count = 0;
  int parts = 1;
  int64_t begin(int part) const { return count * part / parts; }
  int64_t end(int part) const { return begin(part + 1); }
};

// Largest number of parts of a forward pass.
inline constexpr int kForwardParts = 24;

// Two sums over each channel: [part][2][channels].
struct PartSums {
  double* values = nullptr;
  int parts = 0, channels = 0;

  static PartSums in(LinearAllocator& allocator, int parts, int channels) {
    return {allocator.take<double>(int64_t{2} * parts * channels), parts,
            channels};
  }
  double* first(int part) const {
    return values + int64_t{2} * part * channels;
  }
  double* second(int part) const { return first(part) + channels; }
  Moments moments(int part) const { return {first(part), second(part)}; }
  void clear(int part) const { std::fill_n(first(part), 2 * channels, 0.0); }
  // Into part 0.
  void combine() const {
    for (int p = 1; p < parts; ++p)
      for (int i = 0; i < 2 * channels; ++i) values[i] += first(p)[i];
  }
};

}  // namespace chexnet
