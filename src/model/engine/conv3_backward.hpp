// Backward of a 3x3 convolution: the gradient of its input goes through the
// ReLU before it as it leaves the registers, and the input, normalized once
// more, is used at once for the gradient of the weights.
#pragma once

#include <string>
#include <vector>

#include "backward_pass.hpp"
#include "conv3_shape.hpp"

namespace chexnet {

template <class S>
class Conv3Backward {
 public:
  using A = Accumulator<S>;
  Conv3Backward(Build<S>& build, const Conv3Shape<S>& shape);
  // As PointwiseConvolution's.
  PartSums operator()(const Run<S>& run, const GradientMap<S>& dy,
                      GradientEpilogue<S> epilogue) const;

 private:
  struct Space {
    A* packed = nullptr;
    A* weights = nullptr;  // [part][weight_size]
    PartSums sums;
    A* threads = nullptr;
    int64_t weight_size = 0;
    int64_t by_channels = 0, by_pixels = 0, y = 0, v = 0, m = 0, q = 0;
    size_t bytes = 0;
    int64_t thread() const { return by_channels + by_pixels + y + v + m + q; }
  };

  // One task of backward: a part of the image groups, a range of input
  // channels, a thread's panels.
  struct Task {
    const A* packed = nullptr;
    const GradientMap<S>* dy = nullptr;
    GradientEpilogue<S> epilogue;
    int64_t first = 0, last = 0;         // groups of images, or chunks of tiles
    Panel<A> by_channels, by_pixels, y;  // dy twice, and the normalized input
    A *v = nullptr, *m = nullptr, *q = nullptr;
    A* weights = nullptr;  // sums of the part
  };
  // Matrices of weights: for each tap of the kernel, or for each frequency.
  int taps() const { return shape_.winograd ? kernels_.frequencies() : 9; }
  Space space_in(std::byte* region, int threads) const;
  BackwardCut cut_for(int threads) const;
  Task task_of(const Space& space, const BackwardCut& cut, int number,
               int thread) const;
  void direct(const Run<S>& run, const Task& task) const;
  void band_back(const Run<S>& run, const Task& task, int group, int y,
                 int rows) const;
  void winograd(const Task& task) const;
  NextRows rows_of_chunk(const S* map, int64_t pitch, const Cut& tiles,
                         int64_t chunk) const;
  void fill_gradient(const Run<S>& run, const GradientMap<S>& dy, int image,
                     int in_group, Panel<A> by_channels,
                     Panel<A> by_pixels) const;
  void write_gradient(const Run<S>& run, const Space& space) const;

  Conv3Shape<S> shape_;
  WinogradKernels<S> kernels_;  // if shape_.winograd
  // With stride 2 an input pixel has 1, 2 or 4 outputs, by the parity of its
  // row and column.
  struct Class {
    std::vector<int64_t> offsets;
    int first_tap = 0;  // in taps_
  };
  std::vector<Class> classes_;  // [row parity * stride + column parity]
  std::vector<int> taps_;       // all 9 in the order of classes
};

}  // namespace chexnet
