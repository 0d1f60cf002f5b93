// The last layers: a normalized map, its mean over pixels, a linear layer.
#pragma once

#include <string>

#include "build.hpp"
#include "parts.hpp"
#include "pass.hpp"

namespace chexnet {

template <class S>
class ClassifierHead {
 public:
  using A = Accumulator<S>;
  ClassifierHead(Build<S>& build, const std::string& classifier, int channels,
                 int findings, MapShape shape);

  // logits [images][findings]
  void forward(const Pass<S>& run, const FeatureMap<S>& in, A* logits) const;
  // The map that forward averages, pixel by pixel:
  // [images][height][width][channels].
  void features(const Pass<S>& run, const FeatureMap<S>& in, A* into) const;
  // The gradient of sum(dlogits * logits) by features().
  void feature_gradient(const Pass<S>& run, const A* dlogits, A* into) const;
  // Gradients of weight and bias.
  void backward_weights(const Pass<S>& run, const A* dlogits) const;
  // Then the map's gradient into the epilogue. Its sums stay valid until the
  // next pass.
  PartSums backward_map(const Pass<S>& run, GradientEpilogue<S> epilogue) const;

  int channels() const { return channels_; }
  const MapShape& shape() const { return shape_; }

 private:
  // dlogits x weight of one image: [channels].
  void dfeatures_of(const A* dlogits, int image, A* into) const;
  PartSums sums(std::byte* region) const;
  int channels_, findings_;
  MapShape shape_;
  size_t features_, dfeatures_;  // kept: [images][channels]
  const A *weight_, *bias_;
  A *weight_gradient_, *bias_gradient_;
  int64_t weight_end_, bias_end_;
};

}  // namespace chexnet
