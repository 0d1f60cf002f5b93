// Dense blocks without concatenation (Huang et al., CVPR 2017). All features of
// a block are in one channels-last map, their gradients in another; each layer
// reads the first channels and writes the next 32. A channel's producer
// computes its batch statistics once, for every layer that reads it; what their
// BatchNorms subtract from its gradient is linear in the channel, so it is
// summed per channel and applied once, when the producer consumes the gradient.
#pragma once

#include <string>
#include <vector>

#include "chexnet/model/engine/network_spec.hpp"
#include "conv3.hpp"
#include "norm.hpp"
#include "pointwise.hpp"

namespace chexnet {

// A map with its statistics and, in training, its gradient.
template <class S>
struct Features {
  MapShape shape;
  int channels = 0;
  int map = -1, gradient = -1;  // plan buffers
  ChannelStatistics<S> statistics;

  S* data(const Pass<S>& run) const { return run.template buffer<S>(map); }
  S* d(const Pass<S>& run) const { return run.template buffer<S>(gradient); }
  double count(const Pass<S>& run) const { return pixel_count(run, shape); }
  size_t bytes() const { return shape.template bytes<S>(channels); }
};

template <class S>
class DenseBlock {
 public:
  using A = Accumulator<S>;
  // Described right after the layer of its first `in` channels.
  DenseBlock(Build<S>& build, const std::string& name, int in, int layers,
             const DenseNetSpec& spec, MapShape shape);

  const Features<S>& features() const { return features_; }
  // The first `in` channels and their statistics are there.
  void forward(const Pass<S>& run) const;
  // The gradient of all channels is there, as far as readers outside the block
  // go.
  void backward(const Pass<S>& run) const;

 private:
  struct Layer {
    Norm<S> norm1;
    PointwiseConvolution<S> conv1;
    ChannelStatistics<S> statistics;  // of conv1's output
    Norm<S> norm2;
    Convolution3x3<S> conv2;
    int bottleneck;  // plan buffer: conv1's output, in inference of all layers
    int d;           // plan buffer: its gradient, after norm2
  };
  void infer(const Pass<S>& run) const;
  void infer(const Pass<S>& run, ImageRange images) const;
  int images_at_once() const;
  void backward(const Pass<S>& run, const Layer& layer, int first_new) const;

  int in_, growth_, width_;  // width: channels between the two convolutions
  Features<S> features_;
  std::vector<Layer> layers_;
  size_t constants_, ones_;
};

// BN-ReLU-1x1, then a 2x2 mean; computed with the mean first, which is the same
// because both are linear, at a quarter of the work.
template <class S>
class Transition {
 public:
  Transition(Build<S>& build, const std::string& name, const Features<S>& from);
  MapShape output_shape() const { return conv_.output_shape(); }
  void forward(const Pass<S>& run, const Features<S>& from,
               const Features<S>& to) const;
  void backward(const Pass<S>& run, const Features<S>& from,
                const Features<S>& to) const;

 private:
  int out_;
  Norm<S> norm_;
  PointwiseConvolution<S> conv_;
  size_t constants_;
};

}  // namespace chexnet
