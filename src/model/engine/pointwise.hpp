// A 1x1 convolution, forward and backward, fused with the BatchNorm and ReLU
// before it: normalized activations live only in a tile's panel.
#pragma once

#include "backward_pass.hpp"
#include "build.hpp"
#include "pass.hpp"

namespace chexnet {

// Which pixels of its input a 1x1 convolution reads for each of its outputs.
enum class Reading {
  kEach,  // the same pixel
  // The mean of 2x2 (after ReLU), the last odd row or column left out.
  kMean2x2,
  kSecond,  // every second one of every second row
};

template <class S>
class PointwiseConvolution {
 public:
  using A = Accumulator<S>;
  PointwiseConvolution(Build<S>& build, const std::string& name, int in,
                       int out, MapShape shape, Reading reading);

  MapShape output_shape() const { return output_; }
  // out[pixel * pitch + o]; the sums of each output channel stay valid until
  // the next pass (null values unless run.sums()).
  PartSums forward(const Pass<S>& run, const FeatureMap<S>& in, S* out,
                   int64_t pitch) const {
    return multiply(run, in, out, pitch, {}, {0, input_.images});
  }
  // For inference: brings the weights into the form that forward reads, ahead
  // of a forward whose run does not.
  void pack(const Pass<S>& run) const {
    pack(run, run.template kept_at<A>(packed_));
  }
  // For inference: with the BatchNorm (scale, shift) and ReLU that follow.
  void forward_normalized(const Pass<S>& run, const FeatureMap<S>& in, S* out,
                          int64_t pitch, const A* scale, const A* shift,
                          ImageRange images) const {
    multiply(run, in, out, pitch, {{}, scale, shift}, images);
  }
  // Consumes the gradient of the output, writes the weight's gradient, sends
  // the input's into the epilogue (whose sums this pass provides, combined;
  // valid until the next pass). Pixels that the reading leaves out are not
  // touched.
  PartSums backward(const Pass<S>& run, const GradientMap<S>& dy,
                    GradientEpilogue<S> epilogue) const;

 private:
  struct ForwardSpace;
  PartSums multiply(const Pass<S>& run, const FeatureMap<S>& in, S* out,
                    int64_t pitch, OutputStage<S> stage,
                    ImageRange images) const;
  void pack(const Pass<S>& run, A* packed) const;
  void normalize(const Pass<S>& run, const FeatureMap<S>& in, int64_t first,
                 int n, Panel<A> panel) const;
  ForwardSpace forward_space(std::byte* region, int threads,
                             bool training) const;
  BackwardCut backward_cut(int threads) const;
  BackwardSpace<S> backward_space(std::byte* region,
                                  const BackwardCut& cut) const;
  void read_pixels(int64_t first, int n, int64_t* pixels) const;
  NextRows rows_after(const S* map, int64_t pitch, int64_t first,
                      int channels) const;
  double bytes_per_pixel() const;

  int in_, out_, pair_;
  int tile_, backward_tile_;  // pixels
  MapShape input_, output_;
  Reading reading_;
  int64_t tiles_, backward_tiles_;
  const A* weight_;
  A* gradient_;
  size_t packed_;  // kept, for inference
  int64_t end_;    // of the weight in the flat buffer
};

}  // namespace chexnet
