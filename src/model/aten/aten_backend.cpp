#include "aten_backend.hpp"

#include <ATen/ATen.h>

#include <cassert>

#include "backbone.hpp"
#include "math_mode.hpp"
#include "normalization.hpp"

namespace chexnet {
namespace {

class AtenBackend final : public Backend {
 public:
  explicit AtenBackend(const BackendContext& context)
      : options_(context.options),
        spec_(context.spec),
        gradients_(context.parameters),
        layers_{context.parameters,
                gradients_,
                options_.sync_batchnorm,
                activation_format(options_.precision),
                options_.own_engine && !options_.device.is_cpu(),
                options_.recompute},
        backbone_(make_backbone(layers_, spec_)),
        classifier_(std::in_place, layers_, spec_.head.name),
        normalization_(options_) {
    set_math_mode(options_);
  }

  at::Tensor forward(const at::Tensor& images, Mode mode,
                     const MicroBatch& micro_batch) override {
    assert(images.dim() == 4 && images.size(1) == 1);
    if (mode == Mode::kTraining) {
      gradients_.clear();
      // BatchNorm's operator computes m * new + (1 - m) * old, which keeps a
      // NaN of the step before even where m is 1.
      if (micro_batch.first()) layers_.parameters.batch_statistics().zero_();
    }
    return forgetting([&] {
      const at::Tensor features = backbone_->forward(
          normalize(images),
          ForwardPass{mode, micro_batch, frozen_parts(options_.frozen)});
      return classifier_->forward(features, mode);
    });
  }

  void backward(const at::Tensor& dlogits,
                const MicroBatch& micro_batch) override {
    forgetting([&] {
      at::Tensor dfeatures = classifier_->backward(dlogits, micro_batch);
      backbone_->backward(dfeatures, micro_batch,
                          frozen_parts(options_.frozen));
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
            features.to(master_type(options_.precision))};
  }

  at::Tensor feature_gradient(const at::Tensor& dlogits) override {
    return classifier_->feature_gradient(dlogits, feature_shape_);
  }

  std::optional<size_t> planned_bytes(int64_t, int64_t) override {
    return std::nullopt;
  }
  std::string description(int64_t, int64_t) override {
    if (options_.device.is_cpu()) return "ATen's operators";
    return std::string(layers_.kernels ? "own BatchNorm, else " : "") +
           (options_.deterministic ? "ATen's operators, deterministic kernels"
                                   : "ATen's operators, fastest kernels");
  }
  bool depends_on_threads() const override { return true; }
  // No operator calls back, so there is no tick and no time by layer.
  void attach(const Attachments& attachments) override {
    profiler_ = attachments.profiler;
  }

 private:
  // The result of `pass`. If memory is short, it frees at once what the layers
  // kept for backward, so that a smaller batch may fit: layers hold nothing
  // else, so new ones replace them.
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

  at::Tensor on_device(const at::Tensor& images) const {
    const Profiler::Span span(options_.device.is_cpu() ? nullptr : profiler_,
                              Phase::kCopy);
    return images.to(options_.device);
  }

  at::Tensor normalize(const at::Tensor& images) const {
    return normalization_.apply(on_device(images));
  }

  const NetworkOptions& options_;
  const NetworkSpec& spec_;
  GradientWriter gradients_;
  LayerContext layers_;
  std::unique_ptr<Backbone> backbone_;
  std::optional<Classifier> classifier_;
  PixelNormalization normalization_;
  std::vector<int64_t> feature_shape_;  // of the last forward_features
  Profiler* profiler_ = nullptr;
};

}  // namespace

std::unique_ptr<Backend> make_aten_backend(const BackendContext& context) {
  return std::make_unique<AtenBackend>(context);
}

}  // namespace chexnet
