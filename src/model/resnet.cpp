#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "chexnet/model/network.hpp"

namespace chexnet {
namespace {

constexpr std::int64_t kExpansion = 4;

// 1x1 - 3x3 (stride) - 1x1, added to the input or its projection, then ReLU.
class Bottleneck {
 public:
  Bottleneck(LayerContext& c, const std::string& name, std::int64_t in, std::int64_t width,
             std::int64_t stride)
      : conv1_(c, name + ".conv1", {in, width, 1}, Init::kNormalFanOut),
        bn1_(c, name + ".bn1", width, true),
        conv2_(c, name + ".conv2", {width, width, 3, stride, 1}, Init::kNormalFanOut),
        bn2_(c, name + ".bn2", width, true),
        conv3_(c, name + ".conv3", {width, width * kExpansion, 1}, Init::kNormalFanOut),
        bn3_(c, name + ".bn3", width * kExpansion, false) {
    if (stride != 1 || in != width * kExpansion) {
      projection_ = std::make_unique<Convolution>(
          c, name + ".downsample.0", Convolution::Shape{in, width * kExpansion, 1, stride},
          Init::kNormalFanOut);
      projection_norm_ =
          std::make_unique<BatchNorm>(c, name + ".downsample.1", width * kExpansion, false);
    }
  }

  at::Tensor forward(const at::Tensor& x, Mode mode) {
    at::Tensor y = bn1_.forward(conv1_.forward(x, mode), mode);
    y = bn2_.forward(conv2_.forward(y, mode), mode);
    y = bn3_.forward(conv3_.forward(y, mode), mode);
    y.add_(projection_ ? projection_norm_->forward(projection_->forward(x, mode), mode) : x);
    y.relu_();
    if (mode == Mode::kTraining) y_ = y;
    return y;
  }
  at::Tensor backward(const at::Tensor& dy) {
    const at::Tensor masked = at::threshold_backward(dy, std::exchange(y_, {}), 0);
    // Registered last, so its gradients come first.
    at::Tensor shortcut =
        projection_ ? projection_->backward(projection_norm_->backward(masked)) : masked;
    const at::Tensor main = conv1_.backward(
        bn1_.backward(conv2_.backward(bn2_.backward(conv3_.backward(bn3_.backward(masked))))));
    return main + shortcut;
  }

 private:
  Convolution conv1_;
  BatchNorm bn1_;
  Convolution conv2_;
  BatchNorm bn2_;
  Convolution conv3_;
  BatchNorm bn3_;
  std::unique_ptr<Convolution> projection_;
  std::unique_ptr<BatchNorm> projection_norm_;
  at::Tensor y_;
};

class ResNet final : public Backbone {
 public:
  ResNet(LayerContext& c, const ResNetSpec& spec)
      : conv1_(c, "conv1", {3, 64, 7, 2, 3}, Init::kNormalFanOut), bn1_(c, "bn1", 64, true) {
    std::int64_t in = 64;
    std::size_t count = 0;
    for (const int blocks : spec.blocks) count += static_cast<std::size_t>(blocks);
    blocks_.reserve(count);
    for (int stage = 0; stage < 4; ++stage) {
      const std::int64_t width = std::int64_t{64} << stage;
      for (int b = 0; b < spec.blocks[static_cast<std::size_t>(stage)]; ++b) {
        const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(b);
        blocks_.emplace_back(c, name, in, width, b == 0 && stage > 0 ? 2 : 1);
        in = width * kExpansion;
      }
    }
    channels_ = in;
  }
  at::Tensor forward(const at::Tensor& images, Mode mode) override {
    at::Tensor x = pool_.forward(bn1_.forward(conv1_.forward(images, mode), mode), mode);
    for (auto& block : blocks_) x = block.forward(x, mode);
    return x;
  }
  void backward(const at::Tensor& dy) override {
    at::Tensor gradient = dy;
    for (std::size_t b = blocks_.size(); b-- > 0;) gradient = blocks_[b].backward(gradient);
    conv1_.backward(bn1_.backward(pool_.backward(gradient)), false);
  }
  std::int64_t channels() const override { return channels_; }

 private:
  Convolution conv1_;
  BatchNorm bn1_;
  MaxPool pool_;
  std::vector<Bottleneck> blocks_;
  std::int64_t channels_ = 0;
};

}  // namespace

std::unique_ptr<Backbone> make_resnet(LayerContext& context, const ResNetSpec& spec) {
  return std::make_unique<ResNet>(context, spec);
}

}  // namespace chexnet
