#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "chexnet/model/network.hpp"

namespace chexnet {
namespace {

// BN-ReLU-1x1-BN-ReLU-3x3: `in` channels -> `growth` new ones.
class DenseLayer {
 public:
  DenseLayer(LayerContext& c, const std::string& name, std::int64_t in, const DenseNetSpec& spec)
      : norm1_(c, name + ".norm1", in, true),
        conv1_(c, name + ".conv1", {in, spec.bottleneck * spec.growth, 1}, Init::kNormalFanIn),
        norm2_(c, name + ".norm2", spec.bottleneck * spec.growth, true),
        conv2_(c, name + ".conv2", {spec.bottleneck * spec.growth, spec.growth, 3, 1, 1},
               Init::kNormalFanIn) {}
  at::Tensor forward(const at::Tensor& x, Mode mode) {
    return conv2_.forward(norm2_.forward(conv1_.forward(norm1_.forward(x, mode), mode), mode),
                          mode);
  }
  at::Tensor backward(const at::Tensor& dy) {
    return norm1_.backward(conv1_.backward(norm2_.backward(conv2_.backward(dy))));
  }

 private:
  BatchNorm norm1_;
  Convolution conv1_;
  BatchNorm norm2_;
  Convolution conv2_;
};

// Each layer sees the features of all before it.
class DenseBlock {
 public:
  DenseBlock(LayerContext& c, const std::string& name, std::int64_t in, int layers,
             const DenseNetSpec& spec)
      : context_(c), in_(in), growth_(spec.growth) {
    layers_.reserve(static_cast<std::size_t>(layers));
    for (int i = 0; i < layers; ++i)
      layers_.emplace_back(c, name + ".denselayer" + std::to_string(i + 1), in + i * spec.growth,
                           spec);
  }
  std::int64_t channels() const {
    return in_ + static_cast<std::int64_t>(layers_.size()) * growth_;
  }

  at::Tensor forward(const at::Tensor& x, Mode mode) {
    std::vector<at::Tensor> features = {x};
    for (auto& layer : layers_)
      features.push_back(layer.forward(features.size() == 1 ? x : at::cat(features, 1), mode));
    return at::cat(features, 1);
  }
  // One gradient buffer for the block; each layer adds what its inputs contributed.
  at::Tensor backward(const at::Tensor& dy) {
    at::Tensor gradient = dy.clone(context_.memory_format);
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const std::int64_t before = in_ + static_cast<std::int64_t>(i) * growth_;
      const at::Tensor own = gradient.narrow(1, before, growth_).contiguous(context_.memory_format);
      gradient.narrow(1, 0, before).add_(layers_[i].backward(own));
    }
    return gradient.narrow(1, 0, in_).contiguous(context_.memory_format);
  }

 private:
  LayerContext& context_;
  std::int64_t in_, growth_;
  std::vector<DenseLayer> layers_;
};

// BN-ReLU-1x1 that halves the channels, then a 2x2 average.
class Transition {
 public:
  Transition(LayerContext& c, const std::string& name, std::int64_t in)
      : norm_(c, name + ".norm", in, true),
        conv_(c, name + ".conv", {in, in / 2, 1}, Init::kNormalFanIn) {}
  at::Tensor forward(const at::Tensor& x, Mode mode) {
    return pool_.forward(conv_.forward(norm_.forward(x, mode), mode), mode);
  }
  at::Tensor backward(const at::Tensor& dy) {
    return norm_.backward(conv_.backward(pool_.backward(dy)));
  }

 private:
  BatchNorm norm_;
  Convolution conv_;
  AveragePool pool_;
};

class DenseNet final : public Backbone {
 public:
  DenseNet(LayerContext& c, const DenseNetSpec& spec)
      : conv0_(c, "features.conv0", {3, spec.stem, 7, 2, 3}, Init::kNormalFanIn),
        norm0_(c, "features.norm0", spec.stem, true) {
    std::int64_t channels = spec.stem;
    blocks_.reserve(4);
    transitions_.reserve(3);
    for (int b = 0; b < 4; ++b) {
      const std::string number = std::to_string(b + 1);
      blocks_.emplace_back(c, "features.denseblock" + number, channels,
                           spec.blocks[static_cast<std::size_t>(b)], spec);
      channels = blocks_.back().channels();
      if (b < 3) {
        transitions_.emplace_back(c, "features.transition" + number, channels);
        channels /= 2;
      }
    }
    channels_ = channels;
    norm5_ = std::make_unique<BatchNorm>(c, "features.norm5", channels, true);
  }

  at::Tensor forward(const at::Tensor& images, Mode mode) override {
    at::Tensor x = pool0_.forward(norm0_.forward(conv0_.forward(images, mode), mode), mode);
    for (std::size_t b = 0; b < 4; ++b) {
      x = blocks_[b].forward(x, mode);
      if (b < 3) x = transitions_[b].forward(x, mode);
    }
    return norm5_->forward(x, mode);
  }
  void backward(const at::Tensor& dy) override {
    at::Tensor gradient = norm5_->backward(dy);
    for (std::size_t b = 4; b-- > 0;) {
      if (b < 3) gradient = transitions_[b].backward(gradient);
      gradient = blocks_[b].backward(gradient);
    }
    conv0_.backward(norm0_.backward(pool0_.backward(gradient)), false);
  }
  std::int64_t channels() const override { return channels_; }

 private:
  Convolution conv0_;
  BatchNorm norm0_;
  MaxPool pool0_;
  std::vector<DenseBlock> blocks_;
  std::vector<Transition> transitions_;
  std::unique_ptr<BatchNorm> norm5_;
  std::int64_t channels_ = 0;
};

}  // namespace

std::unique_ptr<Backbone> make_densenet(LayerContext& context, const DenseNetSpec& spec) {
  return std::make_unique<DenseNet>(context, spec);
}

}  // namespace chexnet
