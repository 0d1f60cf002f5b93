// A 3x3 convolution with padding 1, forward and backward.
#pragma once

#include <cassert>
#include <memory>
#include <string>

#include "conv3_backward.hpp"
#include "conv3_forward.hpp"

namespace chexnet {

template <class S>
class Convolution3x3 {
 public:
  // stride 1 or 2
  Convolution3x3(Build<S>& build, const std::string& name, int in, int out,
                 MapShape shape, int stride)
      : shape_(build, name, in, out, shape, stride), forward_(build, shape_) {
    if (build.training)
      backward_ = shape_.winograd ? winograd_backward(build, shape_)
                                  : direct_backward(build, shape_);
  }

  MapShape output_shape() const { return shape_.output; }
  // As PointwiseConvolution's.
  PartSums forward(const Pass<S>& run, const FeatureMap<S>& in, S* out,
                   int64_t pitch) const {
    return forward_(run, in, out, pitch);
  }
  void pack(const Pass<S>& run) const { forward_.pack(run); }
  // For inference: of a map after its BatchNorm and ReLU.
  void forward_normalized(const Pass<S>& run, const S* in, int64_t in_pitch,
                          S* out, int64_t pitch, ImageRange images) const {
    forward_.normalized(run, in, in_pitch, out, pitch, images);
  }
  PartSums backward(const Pass<S>& run, const GradientMap<S>& dy,
                    const GradientEpilogue<S>& epilogue) const {
    assert(run.training && dy.channels == shape_.out &&
           epilogue.map.channels == shape_.in);
    const PassTimer timer =
        shape_.timer(run, PassKind::kConv3Backward, shape_.input.images);
    const PartSums sums = backward_->compute(run, dy, epilogue);
    run.micro_batch.written(shape_.end);
    sums.combine();
    return sums;
  }

 private:
  Conv3Shape<S> shape_;
  Conv3Forward<S> forward_;
  std::unique_ptr<Conv3Backward<S>> backward_;  // in training
};

}  // namespace chexnet
