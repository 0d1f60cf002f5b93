// Backward of a 3x3 convolution: the gradient of its input goes through the
// ReLU before it as it leaves the registers, and the input, normalized once
// more, is used at once for the gradient of the weights. A class for each of
// two algorithms, each in its file.
#pragma once

#include <algorithm>
#include <memory>

#include "backward_pass.hpp"
#include "conv3_shape.hpp"

namespace chexnet {

template <class S>
class Conv3Backward {
 public:
  virtual ~Conv3Backward() = default;
  // As PointwiseConvolution's backward, but sums are not combined yet.
  virtual PartSums compute(const Pass<S>& run, const GradientMap<S>& dy,
                           const GradientEpilogue<S>& epilogue) const = 0;
};

template <class S>
std::unique_ptr<Conv3Backward<S>> direct_backward(Build<S>& build,
                                                  const Conv3Shape<S>& shape);
// Of a shape that is for Winograd.
template <class S>
std::unique_ptr<Conv3Backward<S>> winograd_backward(Build<S>& build,
                                                    const Conv3Shape<S>& shape);

// How a batch of `items` is cut, where weights are so many matrices, one for
// each tap or frequency: into as many parts as have sums of 4 MB together.
template <class S>
BackwardCut conv3_cut(const Conv3Shape<S>& shape, int items, int matrices,
                      int threads) {
  constexpr int64_t kMostBytes = int64_t{4} << 20;
  const int64_t bytes = int64_t{matrices} * shape.in * shape.out *
                        static_cast<int64_t>(sizeof(Accumulator<S>));
  return {items, shape.in, threads,
          static_cast<int>(
              std::clamp<int64_t>(kMostBytes / bytes, 1, BackwardCut::kParts))};
}

}  // namespace chexnet
