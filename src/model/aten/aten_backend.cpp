#include "aten_backend.hpp"

#include <ATen/ATen.h>

#include <cassert>

#include "backbone.hpp"
#include "math_mode.hpp"

namespace chexnet {
namespace {

std::unique_ptr<Backbone> make_backbone(const LayerContext& context,
                                        const NetworkSpec& spec) {
  if (const auto* dense = std::get_if<DenseNetSpec>(&spec.family))
    return make_densenet(context, *dense);
  return make_resnet(context, std::get<ResNetSpec>(spec.family));
}

class AtenBackend final : public Backend {
 public:
  explicit AtenBackend(const BackendContext& context)
      : options_(context.options),
        spec_(context.spec),
        gradients_(context.parameters),
        layers_{context.parameters, gradients_, options_.sync_batchnorm,
                activation_format(options_.precision)},
        backbone_(make_backbone(layers_, spec_)),
        classifier_(std::in_place, layers_, spec_.head.name),
        mean_(per_channel(options_.mean)),
        std_(per_channel(options_.std)) {
    set_math_mode(options_);
  }

  at::Tensor forward(const at::Tensor& images, Mode mode,
                     const MicroBatch& micro_batch) override {
    assert(images.dim() == 4 && images.size(1) == 1);
    const Mode backbone_mode =
        options_.freeze_backbone ? Mode::kInference : mode;
    if (mode == Mode::kTraining) {
      gradients_.clear();
      // BatchNorm's operator computes m * new + (1 - m) * old, which keeps a
      // NaN of the step before even where m is 1.
      if (micro_batch.first()) layers_.parameters.batch_statistics().zero_();
    }
    return forgetting([&] {
      const at::Tensor features = backbone_->forward(
          normalize(images), ForwardPass{backbone_mode, micro_batch});
      return classifier_->forward(features, mode);
    });
  }

  void backward(const at::Tensor& dlogits,
                const MicroBatch& micro_batch) override {
    forgetting([&] {
      at::Tensor dfeatures = classifier_->backward(dlogits, micro_batch);
      if (!options_.freeze_backbone)
        backbone_->backward(dfeatures, micro_batch);
      gradients_.flush(micro_batch);
      return dfeatures;
    });
  }

  FeatureForward forward_features(const at::Tensor& images) override {
    const MicroBatch micro_batch;
    const at::Tensor features = backbone_->forward(
        normalize(images), ForwardPass{Mode::kInference, micro_batch});
    feature_shape_ = features.sizes().vec();
    return {classifier_->forward(features, Mode::kInference),
            features.to(mean_.scalar_type())};
  }

  at::Tensor feature_gradient(const at::Tensor& dlogits) override {
    return classifier_->feature_gradient(dlogits, feature_shape_);
  }

  std::optional<size_t> planned_bytes(int64_t, int64_t) override {
    return std::nullopt;
  }
  std::string description(int64_t, int64_t) override {
    if (options_.device.is_cpu()) return "ATen's operators";
    return options_.deterministic ? "ATen's operators, deterministic kernels"
                                  : "ATen's operators, fastest kernels";
  }
  bool depends_on_threads() const override { return true; }
  // No operator calls back, so there is no tick and no time by layer.
  void attach(const Attachments& attachments) override {
    profiler_ = attachments.profiler;
  }

 private:
  // What `pass` computes. If it runs out of memory, what the layers kept for
  // backward is let go at once, so that a smaller batch may fit: layers hold
  // nothing else, so new ones are as good.
  template <class Pass>
  at::Tensor forgetting(const Pass& pass) {
    try {
      return pass();
    } catch (const c10::OutOfMemoryError&) {
      gradients_.clear();
      backbone_ = make_backbone(layers_, spec_);
      classifier_.emplace(layers_, spec_.head.name);
      throw;
    }
  }

  at::Tensor per_channel(const std::vector<double>& values) const {
    return at::tensor(values, at::kDouble)
        .to(options_.device, master_type(options_.precision))
        .view({1, 3, 1, 1});
  }

  at::Tensor on_device(const at::Tensor& images) const {
    const Profiler::Span span(options_.device.is_cpu() ? nullptr : profiler_,
                              Phase::kCopy);
    return images.to(options_.device);
  }

  // [N,1,H,W] bytes to [N,3,H,W]: the gray picture three times, each with the
  // mean and deviation of its channel.
  at::Tensor normalize(const at::Tensor& images) const {
    const at::Tensor gray =
        on_device(images).to(mean_.scalar_type()).div_(255.0);
    return ((gray - mean_) / std_)
        .to(compute_type(options_.precision))
        .contiguous(layers_.memory_format);
  }

  const NetworkOptions& options_;
  const NetworkSpec& spec_;
  GradientWriter gradients_;
  LayerContext layers_;
  std::unique_ptr<Backbone> backbone_;
  std::optional<Classifier> classifier_;
  at::Tensor mean_, std_;               // [1,3,1,1]
  std::vector<int64_t> feature_shape_;  // of the last forward_features
  Profiler* profiler_ = nullptr;
};

}  // namespace

std::unique_ptr<Backend> make_aten_backend(const BackendContext& context) {
  return std::make_unique<AtenBackend>(context);
}

}  // namespace chexnet
