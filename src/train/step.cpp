#include "chexnet/train/step.hpp"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "recorded_steps.hpp"

namespace chexnet {
namespace {

// fp64 gradients travel as they are.
GradientCompression compression_for(const Parameters& parameters,
                                    const TrainStep::Options& options) {
  return parameters.flat_values().scalar_type() == at::kDouble
             ? GradientCompression::kNone
             : options.compression;
}

std::vector<Bucket> buckets_of(const Network& network,
                               const TrainStep::Options& options) {
  const Parameters& parameters = network.parameters();
  const int frozen = frozen_parts(network.options().frozen);
  const at::Tensor& flat = parameters.flat_gradients_and_statistics();
  const int64_t statistics =
      parameters.size() + parameters.moving_statistics(frozen);
  return plan_buckets(
      {parameters.extents(frozen),
       static_cast<size_t>(parameters.trained_end(frozen)),
       static_cast<size_t>(statistics), static_cast<size_t>(flat.numel())},
      flat.element_size(), static_cast<size_t>(options.bucket_mb * 1e6),
      compression_for(parameters, options));
}

BucketedReducer make_reducer(Network& network, Communicator& comm,
                             const TrainStep::Options& options) {
  Parameters& p = network.parameters();
  const at::Tensor& flat = p.flat_gradients_and_statistics();
  comm.set_compression(compression_for(p, options));
  return {comm, buckets_of(network, options), flat.mutable_data_ptr(),
          flat.scalar_type() == at::kDouble ? ElementType::kF64
                                            : ElementType::kF32};
}

// Buckets that travel while the last micro-batch is computed, and the ticks
// that let them advance. However a step ends, even by an exception, it leaves
// no tick set and no bucket for the reducer to wait for.
class BucketsInFlight {
 public:
  BucketsInFlight(Network& network, BucketedReducer& reducer,
                  Communicator& comm)
      : reducer_(reducer) {
    reducer_.begin();
    tick_.emplace(network, [&comm] { comm.poll(); });
  }
  ~BucketsInFlight() { reducer_.abandon(); }
  BucketsInFlight(const BucketsInFlight&) = delete;
  BucketsInFlight& operator=(const BucketsInFlight&) = delete;

  void finish() {
    tick_.reset();
    reducer_.finish();
  }

 private:
  BucketedReducer& reducer_;
  std::optional<Network::TickGuard> tick_;
};

// fp16 on the wire loses what is below 6e-8 of a mean gradient. Where the
// network does not scale its loss anyway, it is scaled by so much that this
// becomes 6e-11, and 64 still fits. A power of two changes no other bit.
constexpr double kWireScale = 1024;

LossScale loss_scale_for(const Network& network,
                         const TrainStep::Options& options) {
  if (network.options().precision == Precision::kFp16)
    return LossScale::for_fp16();
  const bool narrow = compression_for(network.parameters(), options) ==
                      GradientCompression::kFp16;
  return {.value = narrow ? kWireScale : 1.0};
}

// Labels drawn towards 1/2 (Szegedy et al., CVPR 2016, for two classes). What
// is not labeled stays so.
at::Tensor smoothed(const at::Tensor& labels, double amount) {
  return amount == 0 ? labels : labels * (1 - amount) + amount / 2;
}

}  // namespace

TrainStep::TrainStep(Network& network, Communicator& comm, Options options)
    : network_(network),
      comm_(comm),
      options_(std::move(options)),
      loss_(options_.weights, network.parameters().flat_values().options()),
      entries_(at::ones(
          {}, network.parameters().flat_values().options().dtype(at::kDouble))),
      never_(network.options().frozen),
      optimizer_(options_.train, network.parameters(),
                 {frozen_parts(never_), frozen_parts(options_.late)}),
      average_(options_.train.ema, network.parameters()),
      reducer_(make_reducer(network, comm, options_)),
      control_(network.parameters().flat_values(), options_.train.clip_norm,
               loss_scale_for(network, options_)),
      outcomes_(network.parameters().layout().device, options_.profiler) {}

TrainStep::~TrainStep() = default;

void TrainStep::record(CudaLibrary& cuda) {
  if (options_.train.record_step == RecordStep::kOff) return;
  recorded_ = std::make_unique<RecordedSteps>(
      cuda.make_recorder(), comm_,
      RecordedSteps::Training{state(), [this] { settle(); }},
      options_.train.record_step == RecordStep::kOn);
}

void TrainStep::end_recordings() { recorded_.reset(); }

void TrainStep::set_loss_scale(const LossScale& scale) {
  if (control_.is_dynamic()) control_.set_loss_scale(scale);
}

void TrainStep::set_bucket_mb(double bucket_mb) {
  assert(!recorded_);
  options_.bucket_mb = bucket_mb;
  reducer_.set_buckets(buckets_of(network_, options_));
}

// They may hold gradients of a step that was measured before, which would count
// in the norm.
void TrainStep::freeze() {
  set_late(true);
  network_.parameters().flat_gradients().zero_();
}

void TrainStep::thaw() { set_late(false); }

void TrainStep::set_late(bool waits) {
  assert(!recorded_ && outcomes_.under_way() == 0);
  network_.freeze(waits ? options_.late : never_);
  optimizer_.set_waiting(waits);
  reducer_.set_buckets(buckets_of(network_, options_));
}

std::optional<StepResult> TrainStep::run(const at::Tensor& images,
                                         const at::Tensor& labels,
                                         double labeled, double lr,
                                         const at::Tensor& sample_weights) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  entries_.fill_(std::max(labeled, 1.0));
  optimizer_.set_rate(lr);
  const Inputs inputs{images, labels, sample_weights};
  const auto launch = [&] { return compute(inputs); };
  const at::Tensor figures =
      recorded_ ? recorded_->run({images, labels, sample_weights}, launch)
                : launch();
  outcomes_.send({.labeled = labeled}, figures);
  const size_t behind = figures.is_cpu() ? 0 : 1;
  if (outcomes_.under_way() <= behind) return std::nullopt;
  return take();
}

at::Tensor TrainStep::compute(const Inputs& inputs) {
  const at::Tensor loss_sum = compute_gradients(inputs);
  apply();
  return at::stack({loss_sum.to(at::kDouble), control_.norm().to(at::kDouble),
                    control_.not_finite().to(at::kDouble)});
}

std::vector<at::Tensor> TrainStep::state() const {
  const Parameters& p = network_.parameters();
  std::vector<at::Tensor> state = {p.flat_values(), p.flat_running(),
                                   optimizer_.step_count(),
                                   optimizer_.late_step_count()};
  for (const auto& [name, values] : optimizer_.slots()) state.push_back(values);
  if (average_.is_on())
    state.insert(state.end(), {average_.values(), average_.running()});
  const auto of_control = control_.state();
  state.insert(state.end(), of_control.begin(), of_control.end());
  if (!p.flat_compute().is_same(p.flat_values()))
    state.push_back(p.flat_compute());
  return state;
}

void TrainStep::settle() {
  if (outcomes_.under_way() > 0) wait_for_gradients();
}

// This wait has a deadline and knows for whom it waits, so it comes before the
// wait for the device.
void TrainStep::wait_for_gradients() {
  if (!options_.communicate || waited_s_) return;
  reducer_.wait_until_finished();
  waited_s_ = reducer_.wait_s();
}

StepResult TrainStep::take() {
  wait_for_gradients();
  StepResult result = outcomes_.take();
  result.allreduce_wait_s = std::exchange(waited_s_, std::nullopt).value_or(0);
  return result;
}

std::optional<StepResult> TrainStep::finish() {
  if (outcomes_.under_way() == 0) return std::nullopt;
  return take();
}

at::Tensor TrainStep::compute_gradients(const Inputs& inputs) {
  const auto& [images, labels, sample_weights] = inputs;
  const at::Tensor& values = network_.parameters().flat_values();
  const auto parts = static_cast<int>(options_.train.accumulate);
  assert(parts > 0 && images.size(0) % parts == 0 &&
         labels.size(0) == images.size(0));
  const int64_t part_size = images.size(0) / parts;

  if (options_.communicate) comm_.begin_step();
  at::Tensor loss_sum;
  std::optional<BucketsInFlight> buckets;
  MicroBatch part{0, parts};
  // A gradient's way: the back end writes it into the flat buffer and tells
  // MicroBatch::written, which calls on_ready (a std::function), which calls
  // BucketedReducer::written_to, which starts every bucket that is complete.
  if (options_.communicate)
    part.on_ready = [this](int64_t end) {
      reducer_.written_to(static_cast<size_t>(end));
    };
  for (; part.index < parts; ++part.index) {
    const int64_t first = part.index * part_size;
    const at::Tensor x = images.narrow(0, first, part_size);
    const at::Tensor y =
        smoothed(labels.narrow(0, first, part_size)
                     .to(values.device(), values.scalar_type()),
                 options_.train.label_smoothing);
    if (part.last() && options_.communicate)
      buckets.emplace(network_, reducer_, comm_);

    at::Tensor logits;
    {
      const Profiler::Span span(options_.profiler, Phase::kForward);
      logits = network_.forward(x, Mode::kTraining, part);
    }
    // With all of two steps CUDA's queue (1,024 launches) would be full, and
    // where a GPU hangs every rank's host would stand in a launch: nobody could
    // tell whose. This forward pass keeps the GPU busy meanwhile.
    settle();
    const Profiler::Span span(options_.profiler, Phase::kBackward);
    // The mean over ranks follows, so each rank's part of the global mean is
    // scaled up by the world size. (Why a mean: communicator.hpp.)
    const LossResult loss =
        loss_(logits, y, comm_.size(), entries_,
              sample_weights.defined()
                  ? sample_weights.narrow(0, first, part_size)
                        .to(values.device(), values.scalar_type())
                  : sample_weights);
    network_.backward(control_.scaled(loss.dlogits), part);
    loss_sum = part.first() ? loss.sum : loss_sum + loss.sum;
  }
  if (buckets) {
    const Profiler::Span span(options_.profiler, Phase::kBackward,
                              "the last buckets");
    buckets->finish();
  }
  return loss_sum;
}

// The flag of a gradient that is not finite stays on the device: the host is at
// the next step already.
void TrainStep::apply() {
  Parameters& p = network_.parameters();
  const Profiler::Span span(options_.profiler, Phase::kOptimizer);
  control_.apply(p.flat_gradients());
  optimizer_.step(control_.not_finite());
  p.update_running(
      control_.not_finite(),
      p.moving_statistics(frozen_parts(network_.options().frozen)));
  average_.update(optimizer_.step_count(), control_.not_finite());
  p.refresh_compute_copies();
}

TrainStep::Options step_options(const Config& config,
                                const LossWeights& weights,
                                Profiler* profiler) {
  TrainStep::Options options;
  options.train = config.train;
  options.weights = weights;
  options.bucket_mb = config.launch.bucket_mb.value_or(options.bucket_mb);
  options.compression = config.launch.gradient_compression;
  if (config.model.freeze_epochs > 0) options.late = config.model.freeze_until;
  options.profiler = profiler;
  return options;
}

}  // namespace chexnet
