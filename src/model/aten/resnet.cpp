#include <ATen/ATen.h>

#include <optional>
#include <utility>
#include <vector>

#include "backbone.hpp"

namespace chexnet {
namespace {

// The gradients that come back to a block's input, to be summed: the next user
// does it.
struct BlockGradient {
  at::Tensor main;
  std::optional<at::Tensor> shortcut = {};
};

// 1x1 - 3x3 (stride) - 1x1, added to the input or its projection, then ReLU.
class Bottleneck {
 public:
  Bottleneck(const LayerContext& c, const std::string& name, int64_t stride,
             bool projects)
      : context_(c),
        conv1_(c, name + ".conv1"),
        conv2_(c, name + ".bn1", name + ".conv2", {stride, 1}),
        conv3_(c, name + ".bn2", name + ".conv3"),
        bn3_(c, name + ".bn3", Then::kNothing) {
    if (!projects) return;
    projection_ = std::make_unique<Convolution>(
        c, name + ".downsample.0", ConvolutionWindow{.stride = stride});
    projection_norm_ =
        std::make_unique<BatchNorm>(c, name + ".downsample.1", Then::kNothing);
  }

  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) {
    const at::Tensor narrow = conv2_.forward(conv1_.forward(x, pass), pass);
    const at::Tensor wide = conv3_.forward(narrow, pass);
    const at::Tensor shortcut =
        projection_
            ? projection_norm_->forward(projection_->forward(x, pass), pass)
            : x;
    at::Tensor y = bn3_.forward_onto(shortcut, wide, pass);
    if (pass.training()) y_ = y;
    return y;
  }
  BlockGradient backward(const BlockGradient& dy, const MicroBatch& part) {
    const at::Tensor masked =
        masked_by(std::exchange(y_, {}), dy.main, dy.shortcut, context_);
    // Described last, so its gradients come first.
    at::Tensor shortcut =
        projection_ ? projection_->backward(
                          projection_norm_->backward(masked, part), part)
                    : masked;
    const at::Tensor d = conv3_.backward(bn3_.backward(masked, part), part);
    return {conv1_.backward(conv2_.backward(d, part), part), shortcut};
  }

 private:
  const LayerContext& context_;
  Convolution conv1_;
  NormConvolution conv2_, conv3_;
  BatchNorm bn3_;
  std::unique_ptr<Convolution> projection_;
  std::unique_ptr<BatchNorm> projection_norm_;
  at::Tensor y_;
};

class ResNet final : public Backbone {
 public:
  ResNet(const LayerContext& c, const ResNetSpec& spec)
      : conv1_(c, "conv1", {.stride = 2, .padding = 3}),
        bn1_(c, "bn1", Then::kMaxPool) {
    size_t count = 0;
    for (const int blocks : spec.blocks) count += static_cast<size_t>(blocks);
    blocks_.reserve(count);
    middle_ = static_cast<size_t>(spec.blocks[0]) +
              static_cast<size_t>(spec.blocks[1]);
    for (int stage = 0; stage < 4; ++stage) {
      for (int b = 0; b < spec.blocks[static_cast<size_t>(stage)]; ++b) {
        const std::string name =
            "layer" + std::to_string(stage + 1) + "." + std::to_string(b);
        // The first block of a stage widens, and from the second stage on
        // halves, its input.
        const bool first = b == 0;
        blocks_.emplace_back(c, name, first && stage > 0 ? 2 : 1, first);
        parts_.push_back(stage + 1);
      }
    }
  }
  at::Tensor to_middle(const at::Tensor& images,
                       const ForwardPass& pass) override {
    const ForwardPass stem = pass.of_part(kStemPart);
    at::Tensor x = bn1_.forward(conv1_.forward(images, stem), stem);
    for (size_t b = 0; b < middle_; ++b)
      x = blocks_[b].forward(x, pass.of_part(parts_[b]));
    return x;
  }
  at::Tensor from_middle(const at::Tensor& middle,
                         const ForwardPass& pass) override {
    at::Tensor x = middle;
    for (size_t b = middle_; b < blocks_.size(); ++b)
      x = blocks_[b].forward(x, pass.of_part(parts_[b]));
    return x;
  }
  void backward(const at::Tensor& dy, const MicroBatch& part,
                int frozen_parts) override {
    BlockGradient gradient{dy};
    for (size_t b = blocks_.size(); b-- > 0;) {
      if (parts_[b] < frozen_parts) return;
      gradient = blocks_[b].backward(gradient, part);
    }
    if (frozen_parts > kStemPart) return;
    const at::Tensor pooled = gradient.main + *gradient.shortcut;
    conv1_.backward_weight(bn1_.backward(pooled, part), part);
  }

 private:
  Convolution conv1_;
  BatchNorm bn1_;
  std::vector<Bottleneck> blocks_;
  std::vector<int> parts_;  // of the network, of each block
  size_t middle_ = 0;       // blocks before it
};

}  // namespace

std::unique_ptr<Backbone> make_resnet(const LayerContext& context,
                                      const ResNetSpec& spec) {
  return std::make_unique<ResNet>(context, spec);
}

}  // namespace chexnet
