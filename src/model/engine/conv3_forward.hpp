// A 3x3 convolution with padding 1, fused with the BatchNorm and ReLU before
// it. Without Winograd each image becomes a padded panel, row by row just
// before its rows are needed.
#pragma once

#include <string>
#include <vector>

#include "conv3_shape.hpp"

namespace chexnet {

template <class S>
class Conv3Forward {
 public:
  using A = Accumulator<S>;
  Conv3Forward(Build<S>& build, const Conv3Shape<S>& shape);
  // For training. As PointwiseConvolution's.
  PartSums operator()(const Pass<S>& run, const FeatureMap<S>& in, S* out,
                      int64_t pitch) const;
  // As PointwiseConvolution's.
  void pack(const Pass<S>& run) const {
    pack(run, run.template kept_at<A>(packed_));
  }
  // For inference: BatchNorm and ReLU are already applied to its input.
  void normalized(const Pass<S>& run, const S* in, int64_t in_pitch, S* out,
                  int64_t pitch, ImageRange images) const;

 private:
  struct Space {
    A* packed = nullptr;
    PartSums sums;
    A* threads = nullptr;
    int64_t panel = 0, v = 0, m = 0;  // elements of a thread
    size_t bytes = 0;
    int64_t thread() const { return panel + v + m; }
  };
  Space space_in(std::byte* region, int threads, bool training) const;
  void pack(const Pass<S>& run, A* packed) const;
  int64_t packed_elements() const;
  template <class Fill>
  void direct(const Pass<S>& run, const Space& space, const Fill& fill_row,
              S* out, int64_t pitch, ImageRange images) const;
  void winograd(const Pass<S>& run, const Space& space, const FeatureMap<S>& in,
                S* out, int64_t pitch) const;
  void winograd_normalized(const Pass<S>& run, const Space& space,
                           const FeatureMap<S>& in, S* out, int64_t pitch,
                           ImageRange images) const;
  void chunk(const FeatureMap<S>& in, const Space& space, int thread, int first,
             int tiles, S* out, int64_t pitch, Moments moments) const;
  void fill_row(const Pass<S>& run, const FeatureMap<S>& in, int image,
                int in_group, int y, Panel<A> panel) const;

  Conv3Shape<S> shape_;
  WinogradKernels<S> kernels_;  // if shape_.winograd
  size_t packed_;               // kept, for inference
  // From an output's upper left neighbor to its blocks.
  std::vector<int64_t> offsets_;
};

}  // namespace chexnet
