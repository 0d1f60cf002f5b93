#include "chexnet/train/step.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cassert>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

namespace chexnet {
namespace {

std::int64_t trainable_end(const Network& network) {
  const Parameters& parameters = network.parameters();
  return network.options().freeze_backbone ? parameters.head_end()
                                           : parameters.size();
}

// On the CPU summed over fixed pieces in double, so that it does not depend on
// threads.
double norm_of(const at::Tensor& flat) {
  if (!flat.is_cpu()) return at::linalg_vector_norm(flat).item<double>();
  constexpr std::int64_t kPiece = 1 << 15;
  const std::int64_t pieces = (flat.numel() + kPiece - 1) / kPiece;
  std::vector<double> sums(static_cast<std::size_t>(pieces));
  const auto sum = [&](const auto* values) {
    at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        std::array<double, 8> part{};
        const std::int64_t last = std::min(flat.numel(), (p + 1) * kPiece);
        for (std::int64_t i = p * kPiece; i < last; ++i)
          part[static_cast<std::size_t>(i % 8)] +=
              static_cast<double>(values[i]) * static_cast<double>(values[i]);
        sums[static_cast<std::size_t>(p)] =
            std::accumulate(part.begin(), part.end(), 0.0);
      }
    });
  };
  if (flat.scalar_type() == at::kDouble)
    sum(flat.const_data_ptr<double>());
  else
    sum(flat.const_data_ptr<float>());
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

// fp64 gradients travel as they are.
GradientCompression compression_for(const Parameters& parameters,
                                    const TrainStep::Options& options) {
  return parameters.flat_values().scalar_type() == at::kDouble
             ? GradientCompression::kNone
             : options.compression;
}

std::vector<Bucket> buckets_of(Parameters& parameters,
                               const TrainStep::Options& options) {
  const at::Tensor& flat = parameters.flat_gradients_and_statistics();
  return plan_buckets(
      parameters.extents(), static_cast<std::size_t>(parameters.size()),
      static_cast<std::size_t>(flat.numel()), flat.element_size(),
      static_cast<std::size_t>(options.bucket_mb * 1e6),
      compression_for(parameters, options));
}

BucketedReducer make_reducer(Network& network, Communicator& comm,
                             const TrainStep::Options& options) {
  Parameters& p = network.parameters();
  const at::Tensor& flat = p.flat_gradients_and_statistics();
  comm.set_compression(compression_for(p, options));
  return {comm, buckets_of(p, options), flat.mutable_data_ptr(),
          flat.scalar_type() == at::kDouble ? ElementType::kF64
                                            : ElementType::kF32};
}

// Buckets that travel while the last micro-batch is computed, and the ticks
// that let them advance. However a step ends, also by an exception, no tick
// stays set and the reducer waits for no bucket of it.
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

  // Returns the seconds it waited for what was still under way.
  double finish() {
    tick_.reset();
    reducer_.finish();
    reducer_.wait_until_finished();
    return reducer_.wait_s();
  }

 private:
  BucketedReducer& reducer_;
  std::optional<Network::TickGuard> tick_;
};

}  // namespace

TrainStep::TrainStep(Network& network, Communicator& comm, Options options)
    : network_(network),
      comm_(comm),
      options_(std::move(options)),
      loss_(options_.weights, network.parameters().flat_values().options()),
      optimizer_(options_.train, network.parameters(), trainable_end(network)),
      reducer_(make_reducer(network, comm, options_)),
      scale_(network.options().precision == Precision::kFp16
                 ? LossScale::for_fp16()
                 : LossScale{}) {}

void TrainStep::set_bucket_mb(double bucket_mb) {
  options_.bucket_mb = bucket_mb;
  reducer_.set_buckets(buckets_of(network_.parameters(), options_));
}

// A gradient's way: the back end writes it into the flat buffer and tells
// MicroBatch::written, which calls the function below (the only call on this
// way whose target is found at run time), which calls
// BucketedReducer::written_to, which starts every bucket that is complete.
TrainStep::Result TrainStep::run(const at::Tensor& images,
                                 const at::Tensor& labels, double labeled,
                                 double lr) {
  const Parameters& p = network_.parameters();
  const auto parts = static_cast<int>(options_.train.accumulate);
  assert(parts > 0 && images.size(0) % parts == 0 &&
         labels.size(0) == images.size(0));
  const std::int64_t part_size = images.size(0) / parts;
  // The mean over ranks follows, so each rank's part of the global mean is
  // scaled up by the world size. (Why a mean: communicator.hpp.)
  const double gradient_scale = scale_.value * comm_.size();

  Result result;
  std::optional<BucketsInFlight> buckets;
  MicroBatch part{0, parts};
  if (options_.communicate)
    part.on_ready = [this](std::int64_t end) {
      reducer_.written_to(static_cast<std::size_t>(end));
    };
  for (; part.index < parts; ++part.index) {
    const std::int64_t first = part.index * part_size;
    const at::Tensor x = images.narrow(0, first, part_size);
    const at::Tensor y =
        labels.narrow(0, first, part_size)
            .to(p.flat_values().device(), p.flat_values().scalar_type());
    if (part.last() && options_.communicate)
      buckets.emplace(network_, reducer_, comm_);

    at::Tensor logits;
    {
      const Profiler::Span span(options_.profiler, Phase::kForward);
      logits = network_.forward(x, Mode::kTraining, part);
    }
    const Profiler::Span span(options_.profiler, Phase::kBackward);
    const LossResult loss =
        loss_(logits, y, gradient_scale, std::max(labeled, 1.0));
    network_.backward(loss.dlogits, part);
    result.loss_sum = part.first() ? loss.sum : result.loss_sum + loss.sum;
  }
  if (buckets) result.allreduce_wait_s = buckets->finish();

  apply(result, lr);
  return result;
}

// Equal on all ranks, because the reduced buffer is: no further agreement is
// needed.
void TrainStep::apply(Result& result, double lr) {
  Parameters& p = network_.parameters();
  const Profiler::Span span(options_.profiler, Phase::kOptimizer);
  at::Tensor gradients = p.flat_gradients();
  if (scale_.value != 1) gradients.mul_(1.0 / scale_.value);
  result.gradient_norm = norm_of(gradients);
  if (!std::isfinite(result.gradient_norm)) {
    result.applied = false;
    if (scale_.dynamic) scale_.overflowed();
    return;
  }
  scale_.succeeded();

  const double clip = options_.train.clip_norm;
  if (clip > 0 && result.gradient_norm > clip)
    gradients.mul_(clip / result.gradient_norm);
  optimizer_.step(lr);
  if (!network_.options().freeze_backbone) p.update_running();
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
  options.profiler = profiler;
  return options;
}

}  // namespace chexnet
