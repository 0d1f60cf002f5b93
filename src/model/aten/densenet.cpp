// The textbook form: each layer's input is a new concatenation of all before
// it, so copies and memory grow with the square of a block's layers. It is what
// the engine, which writes in place, is compared with. A view of one growing
// map instead of the copy would send BatchNorm to CUDA kernels for any strides
// (docs/lab/2026-11-28-gpu.md).
#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "backbone.hpp"

namespace chexnet {
namespace {

// Channels of `a`, then of `b`. Told as [N, H, W, C], CUDA's `cat` copies 16
// bytes at once; told as a channels-last map it writes element by element.
at::Tensor joined(const at::Tensor& a, const at::Tensor& b,
                  at::MemoryFormat format) {
  if (format != at::MemoryFormat::ChannelsLast) return at::cat({a, b}, 1);
  return at::cat({a.permute({0, 2, 3, 1}), b.permute({0, 2, 3, 1})}, 3)
      .permute({0, 3, 1, 2});
}

// BN-ReLU-1x1-BN-ReLU-3x3: `in` channels -> `growth` new ones.
class DenseLayer {
 public:
  DenseLayer(const LayerContext& c, const std::string& name)
      : norm1_(c, name + ".norm1"),
        conv1_(c, name + ".conv1"),
        norm2_(c, name + ".norm2"),
        conv2_(c, name + ".conv2", {.padding = 1}) {}
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) {
    const at::Tensor narrow = conv1_.forward(norm1_.forward(x, pass), pass);
    return conv2_.forward(norm2_.forward(narrow, pass), pass);
  }
  // The gradient by x, plus `more`.
  at::Tensor backward(const at::Tensor& dy, const MicroBatch& part,
                      const at::Tensor& more) {
    const at::Tensor d = norm2_.backward(conv2_.backward(dy, part), part);
    return norm1_.backward(conv1_.backward(d, part), part, more);
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
  DenseBlock(const LayerContext& c, const std::string& name, int64_t in,
             int layers, const DenseNetSpec& spec)
      : context_(c), in_(in), growth_(spec.growth) {
    layers_.reserve(static_cast<size_t>(layers));
    for (int i = 0; i < layers; ++i)
      layers_.emplace_back(c, name + ".denselayer" + std::to_string(i + 1));
  }
  int64_t channels() const {
    return in_ + static_cast<int64_t>(layers_.size()) * growth_;
  }

  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) {
    at::Tensor features = x;
    for (auto& layer : layers_)
      features = joined(features, layer.forward(features, pass),
                        context_.memory_format);
    return features;
  }
  // Each layer adds what came to its inputs from all behind it.
  at::Tensor backward(const at::Tensor& dy, const MicroBatch& part) {
    at::Tensor gradient = dy;
    for (size_t i = layers_.size(); i-- > 0;) {
      const int64_t before = in_ + static_cast<int64_t>(i) * growth_;
      const at::Tensor own = gradient.narrow(1, before, growth_)
                                 .contiguous(context_.memory_format);
      gradient = layers_[i].backward(own, part, gradient.narrow(1, 0, before));
    }
    return gradient;
  }

 private:
  const LayerContext& context_;
  int64_t in_, growth_;
  std::vector<DenseLayer> layers_;
};

// BN-ReLU, a 2x2 average, and a 1x1 that halves the channels. The paper has the
// average last; the two are linear maps, one of pixels and one of channels, so
// their order changes nothing but that the 1x1 meets a quarter of the pixels.
class Transition {
 public:
  Transition(const LayerContext& c, const std::string& name)
      : norm_(c, name + ".norm"), pool_(c), conv_(c, name + ".conv") {}
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) {
    return conv_.forward(pool_.forward(norm_.forward(x, pass), pass), pass);
  }
  at::Tensor backward(const at::Tensor& dy, const MicroBatch& part) {
    return norm_.backward(pool_.backward(conv_.backward(dy, part)), part);
  }

 private:
  BatchNorm norm_;
  AveragePool pool_;
  Convolution conv_;
};

class DenseNet final : public Backbone {
 public:
  DenseNet(const LayerContext& c, const DenseNetSpec& spec)
      : conv0_(c, "features.conv0", {.stride = 2, .padding = 3}),
        norm0_(c, "features.norm0"),
        pool0_(c),
        norm5_(c, "features.norm5") {
    int64_t channels = spec.stem;
    blocks_.reserve(4);
    transitions_.reserve(3);
    for (int b = 0; b < 4; ++b) {
      const std::string number = std::to_string(b + 1);
      blocks_.emplace_back(c, "features.denseblock" + number, channels,
                           spec.blocks[static_cast<size_t>(b)], spec);
      channels = blocks_.back().channels();
      if (b < 3) {
        transitions_.emplace_back(c, "features.transition" + number);
        channels /= 2;
      }
    }
  }

  at::Tensor to_middle(const at::Tensor& images,
                       const ForwardPass& pass) override {
    at::Tensor x = pool0_.forward(
        norm0_.forward(conv0_.forward(images, pass), pass), pass);
    x = transitions_[0].forward(blocks_[0].forward(x, pass), pass);
    return blocks_[1].forward(x, pass);
  }
  at::Tensor from_middle(const at::Tensor& middle,
                         const ForwardPass& pass) override {
    at::Tensor x = middle;
    for (size_t b = 2; b < 4; ++b)
      x = blocks_[b].forward(transitions_[b - 1].forward(x, pass), pass);
    return norm5_.forward(x, pass);
  }
  void backward(const at::Tensor& dy, const MicroBatch& part) override {
    at::Tensor gradient = norm5_.backward(dy, part);
    for (size_t b = 4; b-- > 0;) {
      if (b < 3) gradient = transitions_[b].backward(gradient, part);
      gradient = blocks_[b].backward(gradient, part);
    }
    conv0_.backward_weight(norm0_.backward(pool0_.backward(gradient), part),
                           part);
  }

 private:
  Convolution conv0_;
  BatchNorm norm0_;
  MaxPool pool0_;
  std::vector<DenseBlock> blocks_;
  std::vector<Transition> transitions_;
  BatchNorm norm5_;
};

}  // namespace

std::unique_ptr<Backbone> make_densenet(const LayerContext& context,
                                        const DenseNetSpec& spec) {
  return std::make_unique<DenseNet>(context, spec);
}

}  // namespace chexnet
