// ResNet in bottleneck form (He et al., CVPR 2016), with the stride on the 3x3
// as in torchvision. The sum after each bottleneck is kept; its ReLU needs no
// mask, because the kept value is positive exactly where ReLU was open.
// Gradients of a stage's sums live in one map that is updated in place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/model/engine/engine.hpp"
#include "classifier_head.hpp"
#include "conv3.hpp"
#include "norm.hpp"
#include "pointwise.hpp"
#include "stem.hpp"

namespace chexnet {

// A convolution's output with its BatchNorm.
template <class S>
struct ConvolutionOutput {
  MapShape shape;
  int channels;
  int raw;  // plan buffer
  ChannelStatistics<S> statistics;
  Norm<S> norm;

  ConvolutionOutput(Build<S>& build, const std::string& name, int channels,
                    MapShape shape);
  S* data(const Pass<S>& run) const { return run.template buffer<S>(raw); }
  FeatureMap<S> map(const Pass<S>& run) const {
    return norm.map(run, data(run), channels);
  }
  // After the convolution wrote it.
  void finish(const Pass<S>& run, const PartSums& sums) const;
};

// Vectors that make BatchNorm's affine form the identity, for maps that need
// none.
template <class S>
struct IdentityVectors {
  size_t ones, zeros;
  FeatureMap<S> map(const Pass<S>& run, const S* x, int channels) const {
    return {x, channels, channels, run.template kept_at<Accumulator<S>>(ones),
            run.template kept_at<Accumulator<S>>(zeros)};
  }
};

template <class S>
class Bottleneck {
 public:
  using A = Accumulator<S>;
  static constexpr int kExpansion = 4;
  Bottleneck(Build<S>& build, const std::string& name, int in, int width,
             int stride, MapShape shape, const IdentityVectors<S>& identity);

  MapShape output_shape() const { return expanded_.shape; }
  int output_channels() const { return expanded_.channels; }
  bool projects() const { return projection_.has_value(); }
  void forward(const Pass<S>& run, const S* x, S* out) const;
  // d: gradient of the sum, 0 where its ReLU was closed. dx: the same of the
  // input's; may be d where the bottleneck does not project.
  void backward(const Pass<S>& run, const S* x, S* d, S* dx) const;

 private:
  struct Projection {
    PointwiseConvolution<S> convolution;
    ConvolutionOutput<S> map;
  };
  PartSums sums_of(const Pass<S>& run, const S* d,
                   const ConvolutionOutput<S>& map) const;
  GradientMap<S> own_gradient(const Pass<S>& run, const PartSums& sums,
                              const ConvolutionOutput<S>& map,
                              const S* d) const;

  IdentityVectors<S> identity_;
  int in_;
  MapShape shape_;
  PointwiseConvolution<S> conv1_;
  ConvolutionOutput<S> narrow_;
  Convolution3x3<S> conv2_;
  ConvolutionOutput<S> strided_;
  PointwiseConvolution<S> conv3_;
  ConvolutionOutput<S> expanded_;
  std::optional<Projection> projection_;
  int d_narrow_, d_strided_;  // plan buffers
  size_t constants_;
};

template <class S>
class ResNet {
 public:
  using A = Accumulator<S>;
  // `head`: the classifier head's name
  ResNet(Build<S>& build, const ResNetSpec& spec, const std::string& head,
         const Engine::Options& options);
  void forward(const Pass<S>& run, const uint8_t* images, A* logits) const;
  void backward(const Pass<S>& run, const uint8_t* images,
                const A* dlogits) const;
  // The head's input, after forward.
  FeatureMap<S> features(const Pass<S>& run) const;
  const ClassifierHead<S>& head() const { return *head_; }

 private:
  struct Block {
    Bottleneck<S> bottleneck;
    int sum;       // plan buffer: its output
    int gradient;  // plan buffer, shared by a stage
    int part;      // of the network
  };
  const S* input(const Pass<S>& run, size_t block) const;

  Stem<S> stem_;
  IdentityVectors<S> identity_;
  int pooled_, d_pooled_;  // plan buffers: the stem's output and its gradient
  std::vector<Block> blocks_;
  int frozen_parts_;
  std::optional<ClassifierHead<S>> head_;
};

}  // namespace chexnet
