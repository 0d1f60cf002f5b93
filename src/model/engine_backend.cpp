#include "engine_backend.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cassert>

#include "chexnet/core/thread_pool.hpp"
#include "chexnet/model/engine/engine.hpp"
#include "chexnet/model/engine/memory_plan.hpp"

namespace chexnet {
namespace {

// An Engine knows one shape, one mode and one number of threads; this class
// makes it at first use and again when one of them changes. Training and
// inference alternate (an evaluation between two steps), so there are two
// engines. They share one arena: of the two only one works at a time, from its
// forward to the end of its backward.
class EngineBackend final : public Backend {
 public:
  explicit EngineBackend(const BackendContext& context)
      : spec_(context.spec),
        findings_(context.findings),
        options_(context.options),
        parameters_(context.parameters) {
    assert(parameters_.layout().weights == at::MemoryFormat::Contiguous);
  }

  at::Tensor forward(const at::Tensor& images, Mode mode,
                     const MicroBatch& micro_batch) override {
    const int64_t batch = images.size(0), size = images.size(2);
    assert(mode == Mode::kInference || !attachments_.fixed_weights);
    assert(images.scalar_type() == at::kByte && images.size(3) == size);

    active_ =
        &engine_for(batch, size, mode == Mode::kTraining && trains_backbone());
    images_ = images.contiguous();
    at::Tensor logits =
        at::empty({batch, findings_}, parameters_.flat_values().options());
    active_->forward(images_.const_data_ptr<uint8_t>(), micro_batch,
                     logits.mutable_data_ptr());
    return logits;
  }

  void backward(const at::Tensor& dlogits,
                const MicroBatch& micro_batch) override {
    assert(active_ != nullptr && images_.defined());
    assert(dlogits.size(0) == images_.size(0) && dlogits.size(1) == findings_);

    const at::Tensor contiguous = dlogits.contiguous();
    active_->backward(contiguous.const_data_ptr(), micro_batch);
    images_ = at::Tensor();
  }

  FeatureForward forward_features(const at::Tensor& images) override {
    const at::Tensor logits = forward(images, Mode::kInference, {});
    at::Tensor map = feature_map(logits.size(0));
    active_->features(map.mutable_data_ptr());
    return {logits, map.permute({0, 3, 1, 2})};
  }

  at::Tensor feature_gradient(const at::Tensor& dlogits) override {
    assert(active_ != nullptr && dlogits.size(1) == findings_);
    const at::Tensor contiguous = dlogits.contiguous();
    at::Tensor gradient = feature_map(dlogits.size(0));
    active_->feature_gradient(contiguous.const_data_ptr(),
                              gradient.mutable_data_ptr());
    return gradient.permute({0, 3, 1, 2});
  }

  std::optional<size_t> planned_bytes(int64_t batch, int64_t size) override {
    return engine_bytes(spec_, engine_options(batch, size, trains_backbone()),
                        at::get_num_threads());
  }
  std::string description(int64_t batch, int64_t size) override {
    return engine_for(batch, size, trains_backbone()).description();
  }
  bool depends_on_threads() const override { return false; }

  void attach(const Attachments& attachments) override {
    attachments_ = attachments;
    if (thread_pool_ != nullptr) thread_pool_->set_tick(attachments_.tick);
    for (const Built* built : {&training_, &inference_})
      if (built->engine != nullptr) attach_to(*built->engine);
  }

 private:
  struct Built {
    int64_t batch = 0, size = 0;
    std::unique_ptr<Engine> engine;
  };

  bool trains_backbone() const {
    return options_.frozen != FrozenPart::kBackbone;
  }
  // [N,h,w,C], not filled.
  at::Tensor feature_map(int64_t images) const {
    const Engine::FeatureShape shape = active_->feature_shape();
    return at::empty({images, shape.height, shape.width, shape.channels},
                     parameters_.flat_values().options());
  }

  Engine::Options engine_options(int64_t batch, int64_t size,
                                 bool training) const {
    Engine::Options options;
    options.batch = static_cast<int>(batch);
    options.size = static_cast<int>(size);
    options.findings = static_cast<int>(findings_);
    options.arithmetic = arithmetic_of(options_.precision);
    options.training = training;
    if (training) options.frozen_parts = frozen_parts(options_.frozen);
    options.winograd = options_.winograd;
    options.sync_batchnorm = options_.sync_batchnorm;
    options.mean = options_.mean;
    options.std = options_.std;
    return options;
  }

  FlatParameters flat_parameters() {
    FlatParameters flat;
    flat.values = parameters_.flat_values().mutable_data_ptr();
    flat.gradients =
        parameters_.flat_gradients_and_statistics().mutable_data_ptr();
    flat.running = parameters_.flat_running().mutable_data_ptr();
    flat.batch_statistics = parameters_.size();
    flat.parameter = [this](const std::string& name) {
      return parameters_.begin_of(name);
    };
    flat.statistics = [this](const std::string& name) {
      return parameters_.statistics_begin_of(name);
    };
    return flat;
  }

  // Engines are planned for one number of threads: another makes both anew.
  Engine& engine_for(int64_t batch, int64_t size, bool training) {
    if (thread_pool_ == nullptr ||
        thread_pool_->size() != at::get_num_threads()) {
      training_ = {};
      inference_ = {};
      thread_pool_ = std::make_unique<ThreadPool>(at::get_num_threads());
      thread_pool_->set_tick(attachments_.tick);
    }
    Built& built = training ? training_ : inference_;
    if (built.batch != batch || built.size != size) {
      built = {batch, size,
               make_engine(spec_, engine_options(batch, size, training),
                           flat_parameters(), *thread_pool_, arena_)};
      attach_to(*built.engine);
    }
    return *built.engine;
  }

  void attach_to(Engine& engine) const {
    engine.set_layer_times(attachments_.layer_times);
    engine.set_profiler(attachments_.profiler);
    engine.set_fixed_weights(attachments_.fixed_weights);
  }

  const NetworkSpec& spec_;
  int64_t findings_;
  const NetworkOptions& options_;
  Parameters& parameters_;
  Attachments attachments_;

  // Engines use pool and arena, so they are destroyed first.
  std::unique_ptr<ThreadPool> thread_pool_;
  Arena arena_;
  Built training_, inference_;

  Engine* active_ = nullptr;  // of the last forward
  at::Tensor images_;         // of the last forward, for backward
};

}  // namespace

std::string engine_backend_refusal(const BackendContext& context,
                                   int64_t height, int64_t width) {
  const NetworkOptions& options = context.options;
  if (!options.own_engine) return "train.engine: aten";
  if (!options.device.is_cpu()) return "on a GPU";
  if (options.precision == Precision::kFp16) return "fp16";
  if (height != width) return "images that are not square";
  return engine_refuses(context.spec, static_cast<int>(height));
}

std::unique_ptr<Backend> make_engine_backend(const BackendContext& context) {
  return std::make_unique<EngineBackend>(context);
}

}  // namespace chexnet
