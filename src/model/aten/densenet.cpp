// DenseNet as every GPU trains it. Each layer of a block sees the features of
// all before it. Two forms:
//
// our kernels      features of a block are one map, and their gradient another,
//                  to which layers add channels in place. BatchNorm reads and
//                  adds to a part of them; no convolution sees them. The means
//                  that all its readers subtract from a channel's gradient are
//                  summed beside it, and subtracted when it is read
// ATen's operators the textbook's: each layer's input is a new concatenation,
//                  so copies grow with the square of a block's layers. ATen's
//                  BatchNorm takes no parts of maps. It is what the engine is
//                  compared with
#include <ATen/ATen.h>

#include <optional>
#include <utility>
#include <vector>

#include "backbone.hpp"
#include "own_operators.hpp"

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

ReadersGradient channels_of(const ReadersGradient& sum, int64_t from,
                            int64_t count) {
  ReadersGradient part{sum.map.narrow(1, from, count), {}, {}};
  if (sum.offset.defined()) {
    part.offset = sum.offset.narrow(0, from, count);
    part.slope = sum.slope.narrow(0, from, count);
  }
  return part;
}

// A block's input and what its layers have added. In our kernels' form with the
// statistics of each channel, found when it comes.
class Features {
 public:
  // Of x; there will be `most` channels.
  Features(const LayerContext& context, const at::Tensor& x, int64_t most,
           Mode mode)
      : context_(context),
        mode_(mode),
        grows_(context.kernels && own_kernels_take(x, most)) {
    if (grows_) {
      const auto format = x.options().memory_format(context.memory_format);
      map_ = at::empty({x.size(0), most, x.size(2), x.size(3)}, format);
      statistics_ = new_statistics(context, x, most);
    }
    append(x);
  }
  void append(const at::Tensor& x) {
    const int64_t before = channels_, added = x.size(1);
    channels_ += added;
    if (grows_)
      find_statistics(
          context_, dense(x), map_.narrow(1, before, added), mode_, true,
          {statistics_.mean.narrow(0, before, added),
           statistics_.var.narrow(0, before, added), statistics_.pixels});
    else
      map_ = before == 0 ? x : joined(map_, x, context_.memory_format);
  }
  at::Tensor map() const {
    return grows_ ? map_.narrow(1, 0, channels_) : map_;
  }
  // Set for the channels of map().
  const MapStatistics& statistics() const { return statistics_; }

 private:
  const LayerContext& context_;
  Mode mode_;
  bool grows_;
  at::Tensor map_;
  int64_t channels_ = 0;
  MapStatistics statistics_;
};

// BN-ReLU-1x1-BN-ReLU-3x3: `in` channels -> `growth` new ones.
class DenseLayer {
 public:
  DenseLayer(const LayerContext& c, const std::string& name)
      : conv1_(c, name + ".norm1", name + ".conv1"),
        conv2_(c, name + ".norm2", name + ".conv2", {.padding = 1}) {}
  at::Tensor forward(const Features& x, const ForwardPass& pass) {
    const at::Tensor narrow = conv1_.forward(x.map(), pass, x.statistics());
    return conv2_.forward(narrow, pass);
  }
  // Adds to `sum` the gradient by x.
  void backward_onto(ReadersGradient sum, const at::Tensor& dy,
                     const MicroBatch& part) {
    conv1_.backward_onto(sum, conv2_.backward(dy, part), part);
  }

 private:
  NormConvolution conv1_, conv2_;
};

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
    Features features(context_, x, channels(), pass.mode);
    for (auto& layer : layers_) features.append(layer.forward(features, pass));
    statistics_ = features.statistics();
    if (pass.training() && statistics_.mean.defined()) kept_.emplace(features);
    return features.map();
  }
  // Of what the last forward gave, once; undefined where ATen's operators
  // compute.
  MapStatistics take_statistics() { return std::exchange(statistics_, {}); }
  // For who reads what the last forward in training gave.
  ReadersGradient new_gradient() const {
    if (!kept_) return {};
    const at::Tensor& mean = kept_->statistics().mean;
    return {{}, at::zeros_like(mean), at::zeros_like(mean)};
  }
  // Each layer adds to the gradient of its inputs, in place.
  at::Tensor backward(const ReadersGradient& sum, const MicroBatch& part) {
    for (size_t i = layers_.size(); i-- > 0;) {
      const int64_t before = in_ + static_cast<int64_t>(i) * growth_;
      const at::Tensor own = gradient_of(sum, before, growth_);
      layers_[i].backward_onto(channels_of(sum, 0, before), own, part);
    }
    at::Tensor dx = gradient_of(sum, 0, in_);
    kept_.reset();
    return dx;
  }

 private:
  // Of channels whose readers have all added theirs, dense.
  at::Tensor gradient_of(const ReadersGradient& sum, int64_t from,
                         int64_t count) const {
    const ReadersGradient own = channels_of(sum, from, count);
    if (!own.offset.defined())
      return own.map.contiguous(context_.memory_format);
    const MapStatistics& all = kept_->statistics();
    return complete_gradient(context_, own, kept_->map().narrow(1, from, count),
                             {all.mean.narrow(0, from, count), {}, all.pixels});
  }
  const LayerContext& context_;
  int64_t in_, growth_;
  std::vector<DenseLayer> layers_;
  MapStatistics statistics_;
  std::optional<Features> kept_;  // by our kernels' forward in training
};

// BN-ReLU, a 2x2 average, and a 1x1 that halves the channels. The paper has the
// average last; the two are linear maps, one of pixels and one of channels, so
// their order changes nothing but that the 1x1 meets a quarter of the pixels.
class Transition {
 public:
  Transition(const LayerContext& c, const std::string& name)
      : norm_(c, name + ".norm", Then::kAveragePool),
        conv_(c, name + ".conv") {}
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass,
                     const MapStatistics& known) {
    return conv_.forward(norm_.forward(x, pass, known), pass);
  }
  // Adds to `sum` the gradient by x.
  void backward_onto(ReadersGradient& sum, const at::Tensor& dy,
                     const MicroBatch& part) {
    norm_.backward_onto(sum, conv_.backward(dy, part), part);
  }

 private:
  BatchNorm norm_;
  Convolution conv_;
};

class DenseNet final : public Backbone {
 public:
  DenseNet(const LayerContext& c, const DenseNetSpec& spec)
      : conv0_(c, "features.conv0", {.stride = 2, .padding = 3}),
        norm0_(c, "features.norm0", Then::kMaxPool),
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
    const ForwardPass stem = pass.of_part(kStemPart), first = pass.of_part(1);
    at::Tensor x = norm0_.forward(conv0_.forward(images, stem), stem);
    x = blocks_[0].forward(x, first);
    x = transitions_[0].forward(x, first, blocks_[0].take_statistics());
    return blocks_[1].forward(x, pass.of_part(2));
  }
  at::Tensor from_middle(const at::Tensor& middle,
                         const ForwardPass& pass) override {
    at::Tensor x = middle;
    for (size_t b = 2; b < 4; ++b) {
      const auto own = static_cast<int>(b) + 1;
      x = transitions_[b - 1].forward(x, pass.of_part(own - 1),
                                      blocks_[b - 1].take_statistics());
      x = blocks_[b].forward(x, pass.of_part(own));
    }
    return norm5_.forward(x, pass.of_part(4), blocks_[3].take_statistics());
  }
  void backward(const at::Tensor& dy, const MicroBatch& part,
                int frozen_parts) override {
    if (frozen_parts == kHeadPart) return;
    ReadersGradient sum = blocks_[3].new_gradient();
    norm5_.backward_onto(sum, dy, part);
    at::Tensor gradient;
    for (size_t b = 4; b-- > 0;) {
      gradient = blocks_[b].backward(sum, part);
      if (static_cast<int>(b) + 1 == frozen_parts) return;
      if (b == 0) break;
      sum = blocks_[b - 1].new_gradient();
      transitions_[b - 1].backward_onto(sum, gradient, part);
    }
    conv0_.backward_weight(norm0_.backward(gradient, part), part);
  }

 private:
  Convolution conv0_;
  BatchNorm norm0_;
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
