// Shared by backward passes of convolutions. They sum weight gradients over
// pixels: few parts, each with its own sums, so that the result does not depend
// on threads. More threads than parts divide a part by input channels, which
// changes no sum.
#pragma once

#include <algorithm>
#include <numeric>

#include "parts.hpp"

namespace chexnet {

// A task is a part of the items, and a range of its input channels.
struct BackwardCut {
  Cut items;
  int threads = 1;
  int ranges = 1, blocks = 1;  // blocks of 32 input channels

  static constexpr int kParts = 4;
  // `most_parts` limits parts where sums leave the caches, since each is stored
  // and loaded once more; `least_ranges` divides them in any case.
  BackwardCut(int64_t count, int channels, int threads_,
              int most_parts = kParts, int least_ranges = 1)
      : items{count,
              static_cast<int>(std::clamp<int64_t>(count / 2, 1, most_parts))},
        threads(threads_),
        blocks(channels / kOutputs) {
    ranges = std::min(blocks, std::max(threads / std::gcd(threads, items.parts),
                                       least_ranges));
  }
  int tasks() const { return items.parts * ranges; }
  int part(int task) const { return task / ranges; }
  int first_channel(int task) const {
    return blocks * (task % ranges) / ranges * kOutputs;
  }
  int last_channel(int task) const {
    return blocks * (task % ranges + 1) / ranges * kOutputs;
  }
  int widest() const { return (blocks + ranges - 1) / ranges * kOutputs; }
};

// The workspace of such a pass.
template <class S>
struct BackwardSpace {
  using A = Accumulator<S>;
  int64_t weight_size = 0, thread_size = 0;
  A* packed = nullptr;   // weights in the kernels' form
  A* weights = nullptr;  // sums of their gradient: [part][weight_size]
  PartSums sums;         // of the epilogue
  A* threads = nullptr;  // what each works in: [thread][thread_size]
  size_t bytes = 0;

  // `pair` weights are packed in one unit. With a null region it only counts.
  BackwardSpace(std::byte* region, const BackwardCut& cut, int64_t weight_size_,
                int pair, int64_t thread_size_)
      : weight_size(weight_size_), thread_size(thread_size_) {
    LinearAllocator allocator(region);
    packed = allocator.take<A>(weight_size / pair);
    weights = allocator.take<A>(weight_size * cut.items.parts);
    sums = PartSums::in(allocator, cut.items.parts, cut.blocks * kOutputs);
    threads = allocator.take<A>(thread_size * cut.threads);
    bytes = allocator.used();
  }
  A* weights_of(int part) const { return weights + part * weight_size; }
  A* memory_of(int thread) const { return threads + thread * thread_size; }
};

// The epilogue of one task: its channels, and its part's sums, zeroed.
template <class S>
GradientEpilogue<S> epilogue_of_task(GradientEpilogue<S> epilogue,
                                     const BackwardCut& cut,
                                     const PartSums& sums, int task) {
  epilogue.first = cut.first_channel(task);
  epilogue.last = cut.last_channel(task);
  epilogue.sum = sums.first(cut.part(task));
  epilogue.product = sums.second(cut.part(task));
  std::fill(epilogue.sum + epilogue.first, epilogue.sum + epilogue.last, 0.0);
  std::fill(epilogue.product + epilogue.first, epilogue.product + epilogue.last,
            0.0);
  return epilogue;
}

}  // namespace chexnet
