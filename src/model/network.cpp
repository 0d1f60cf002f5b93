#include "chexnet/model/network.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "chexnet/core/error.hpp"

namespace chexnet {

at::ScalarType master_type(Precision precision) {
  return precision == Precision::kFp64 ? at::kDouble : at::kFloat;
}
at::ScalarType compute_type(Precision precision) {
  if (precision == Precision::kBf16) return at::kBFloat16;
  if (precision == Precision::kFp16) return at::kHalf;
  return master_type(precision);
}

Arithmetic arithmetic_of(Precision precision) {
  if (precision == Precision::kFp64) return Arithmetic::kFp64;
  return precision == Precision::kBf16 ? Arithmetic::kBf16 : Arithmetic::kFp32;
}

Network::Network(const NetworkSpec& spec, std::int64_t findings, Options options)
    : options_(std::move(options)),
      context_{parameters_, options_.sync_batchnorm,
               // PyTorch's fp64 convolutions know only NCHW; elsewhere channels-last is faster on
               // CPU and GPU.
               options_.precision == Precision::kFp64 ? at::MemoryFormat::Contiguous
                                                      : at::MemoryFormat::ChannelsLast},
      spec_(spec),
      findings_(findings) {
  if (const auto* dense = std::get_if<DenseNetSpec>(&spec.family)) {
    backbone_ = make_densenet(context_, *dense);
    classifier_ = std::make_unique<Classifier>(context_, "classifier", backbone_->channels(),
                                               findings, Init::kZero);
  } else {
    backbone_ = make_resnet(context_, std::get<ResNetSpec>(spec.family));
    classifier_ = std::make_unique<Classifier>(context_, "fc", backbone_->channels(), findings,
                                               Init::kUniformFanIn);
  }
  parameters_.allocate(options_.device, master_type(options_.precision),
                       compute_type(options_.precision));
  const auto channel = [&](const std::vector<double>& values) {
    return at::tensor(values, at::kDouble)
        .to(options_.device, master_type(options_.precision))
        .view({1, 3, 1, 1});
  };
  mean_ = channel(options_.mean);
  std_ = channel(options_.std);
}

at::Tensor Network::on_device(const at::Tensor& images) const {
  const Profiler::Span span(options_.device.is_cpu() ? nullptr : profiler_, Phase::kCopy);
  return images.to(options_.device);
}

at::Tensor Network::normalize(const at::Tensor& images) const {
  const at::Tensor gray = on_device(images).to(mean_.scalar_type()).div_(255.0);
  return ((gray - mean_) / std_)
      .to(compute_type(options_.precision))
      .contiguous(context_.memory_format);
}

std::string Network::engine_refusal(std::int64_t size) const {
  if (!options_.own_engine) return "train.engine: aten";
  if (!options_.device.is_cpu()) return "on a GPU";
  if (options_.precision == Precision::kFp16) return "fp16";
  return engine_refuses(spec_, static_cast<int>(size));
}

Engine::Options Network::engine_options(std::int64_t batch, std::int64_t size,
                                        bool training) const {
  Engine::Options options;
  options.batch = static_cast<int>(batch);
  options.size = static_cast<int>(size);
  options.findings = static_cast<int>(findings_);
  options.arithmetic = arithmetic_of(options_.precision);
  options.training = training;
  options.winograd = options_.winograd;
  options.sync_batchnorm = options_.sync_batchnorm;
  options.mean = options_.mean;
  options.std = options_.std;
  return options;
}

std::optional<std::size_t> Network::planned_bytes(std::int64_t batch, std::int64_t size) const {
  if (!engine_refusal(size).empty()) return std::nullopt;
  return engine_bytes(spec_, engine_options(batch, size, !options_.freeze_backbone),
                      at::get_num_threads());
}

std::string Network::description(std::int64_t batch, std::int64_t size) {
  const std::string refusal = engine_refusal(size);
  if (!refusal.empty()) return "ATen's operators (" + refusal + ")";
  return engine_for(batch, size, !options_.freeze_backbone).description();
}

Engine& Network::engine_for(std::int64_t batch, std::int64_t size, bool training) {
  if (thread_pool_ == nullptr || thread_pool_->size() != at::get_num_threads()) {
    training_ = {};
    inference_ = {};
    thread_pool_ = std::make_unique<ThreadPool>(at::get_num_threads());
    thread_pool_->set_tick(tick_);
  }
  Built& built = training ? training_ : inference_;
  if (built.batch != batch || built.size != size) {
    FlatParameters flat;
    flat.values = parameters_.flat_values().mutable_data_ptr();
    flat.gradients = parameters_.flat_gradients_and_tail().mutable_data_ptr();
    flat.running = parameters_.flat_running().mutable_data_ptr();
    flat.batch_statistics = parameters_.size();
    flat.parameter = [this](const std::string& name) { return parameters_.begin_of(name); };
    flat.statistics = [this](const std::string& name) {
      return parameters_.statistics_begin_of(name);
    };
    built = {
        batch, size,
        make_engine(spec_, engine_options(batch, size, training), flat, *thread_pool_, arena_)};
    built.engine->set_layer_times(layer_times_);
    built.engine->set_profiler(profiler_);
  }
  return *built.engine;
}

at::Tensor Network::forward(const at::Tensor& images, Mode mode) {
  const Mode backbone_mode = options_.freeze_backbone ? Mode::kInference : mode;
  active_ = nullptr;
  if (images.size(2) != images.size(3) || !engine_refusal(images.size(2)).empty())
    return classifier_->forward(backbone_->forward(normalize(images), backbone_mode), mode);
  active_ = &engine_for(images.size(0), images.size(2), backbone_mode == Mode::kTraining);
  images_ = images.contiguous();
  at::Tensor logits = at::empty({images.size(0), findings_}, parameters_.flat_values().options());
  active_->forward(images_.const_data_ptr<std::uint8_t>(),
                   {parameters_.micro_batch(), parameters_.micro_batches(), {}},
                   logits.mutable_data_ptr());
  return logits;
}

void Network::backward(const at::Tensor& dlogits) {
  if (active_ != nullptr) {
    const at::Tensor d = dlogits.contiguous();
    active_->backward(d.const_data_ptr(),
                      {parameters_.micro_batch(), parameters_.micro_batches(),
                       [this](std::int64_t end) { parameters_.gradients_written(end); }});
    images_ = at::Tensor();
    return;
  }
  const at::Tensor dy = classifier_->backward(dlogits);
  if (!options_.freeze_backbone) backbone_->backward(dy);
}

void Network::set_tick(std::function<void()> tick) {
  tick_ = std::move(tick);
  if (thread_pool_ != nullptr) thread_pool_->set_tick(tick_);
}

void Network::set_layer_times(LayerTimes* layer_times) {
  layer_times_ = layer_times;
  for (const Built* built : {&training_, &inference_})
    if (built->engine != nullptr) built->engine->set_layer_times(layer_times);
}

void Network::set_profiler(Profiler* profiler) {
  profiler_ = profiler;
  for (const Built* built : {&training_, &inference_})
    if (built->engine != nullptr) built->engine->set_profiler(profiler);
}

}  // namespace chexnet
