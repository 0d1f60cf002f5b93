#include "chexnet/train/step.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace chexnet {
namespace {

// The classifier is first in the flat buffer: its gradients are the first that backward finishes.
std::int64_t trainable_end(const Network& network, const Parameters& parameters) {
  if (!network.options().freeze_backbone) return parameters.size();
  std::int64_t end = 0;
  for (const auto& p : parameters.list())
    if (p.name.starts_with("classifier.") || p.name.starts_with("fc.")) end = p.end;
  return end;
}

// On the CPU summed over fixed pieces in double, so that it does not depend on threads.
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
        sums[static_cast<std::size_t>(p)] = std::accumulate(part.begin(), part.end(), 0.0);
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
  return parameters.flat_values().scalar_type() == at::kDouble ? GradientCompression::kNone
                                                               : options.compression;
}

std::vector<Bucket> buckets_of(Parameters& parameters, const TrainStep::Options& options) {
  const at::Tensor& flat = parameters.flat_gradients_and_tail();
  return plan_buckets(parameters.ends(), static_cast<std::size_t>(flat.numel()),
                      flat.element_size(), static_cast<std::size_t>(options.bucket_mb * 1e6),
                      compression_for(parameters, options));
}

BucketedReducer make_reducer(Network& network, Communicator& comm,
                             const TrainStep::Options& options) {
  Parameters& p = network.parameters();
  const at::Tensor& flat = p.flat_gradients_and_tail();
  comm.set_compression(compression_for(p, options));
  return {comm, buckets_of(p, options), flat.mutable_data_ptr(),
          flat.scalar_type() == at::kDouble ? ElementType::kF64 : ElementType::kF32};
}

}  // namespace

TrainStep::TrainStep(Network& network, Communicator& comm, Options options)
    : network_(network),
      comm_(comm),
      options_(std::move(options)),
      loss_(options_.weights, network.parameters().flat_values().options()),
      optimizer_(options_.train, network.parameters(),
                 trainable_end(network, network.parameters())),
      reducer_(make_reducer(network, comm, options_)),
      scale_(network.options().precision == Precision::kFp16 ? LossScale::for_fp16()
                                                             : LossScale{}) {}

void TrainStep::set_bucket_mb(double bucket_mb) {
  options_.bucket_mb = bucket_mb;
  reducer_.set_buckets(buckets_of(network_.parameters(), options_));
}

TrainStep::Result TrainStep::run(const at::Tensor& images, const at::Tensor& labels, double labeled,
                                 double lr) {
  Parameters& p = network_.parameters();
  const auto micro_batches = static_cast<int>(options_.train.accumulate);
  const std::int64_t micro_size = images.size(0) / micro_batches;
  Result result;
  // The mean over ranks follows, so each rank's share of the global mean is scaled up by the world
  // size.
  const double gradient_scale = scale_.value * comm_.size();
  p.begin_step(micro_batches, [this](std::int64_t end) {
    if (options_.communicate) reducer_.written_to(static_cast<std::size_t>(end));
  });
  for (int m = 0; m < micro_batches; ++m) {
    p.begin_micro_batch(m);
    const at::Tensor x = images.narrow(0, m * micro_size, micro_size);
    const at::Tensor y = labels.narrow(0, m * micro_size, micro_size)
                             .to(p.flat_values().device(), p.flat_values().scalar_type());
    if (m + 1 == micro_batches && options_.communicate) {
      reducer_.begin();
      network_.set_tick([this] { comm_.poll(); });
    }
    at::Tensor logits;
    {
      const Profiler::Span span(options_.profiler, Phase::kForward);
      logits = network_.forward(x, Mode::kTraining);
    }
    const Profiler::Span span(options_.profiler, Phase::kBackward);
    const LossResult loss = loss_(logits, y, gradient_scale, std::max(labeled, 1.0));
    network_.backward(loss.dlogits);
    result.loss_sum = m == 0 ? loss.sum : result.loss_sum + loss.sum;
  }
  if (options_.communicate) {
    network_.set_tick({});
    reducer_.finish();
    result.allreduce_wait_s = reducer_.wait_s();
  }
  const Profiler::Span span(options_.profiler, Phase::kOptimizer);
  at::Tensor gradients = p.flat_gradients();
  if (scale_.value != 1) gradients.mul_(1.0 / scale_.value);
  // Equal on all ranks, because the reduced buffer is: no further agreement is needed.
  {
    // On a GPU this is where the host first waits for the other ranks' gradients.
    const Profiler::Span wait(gradients.is_cpu() ? nullptr : options_.profiler,
                              Phase::kAllReduceWait);
    result.gradient_norm = norm_of(gradients);
  }
  if (!std::isfinite(result.gradient_norm)) {
    result.applied = false;
    if (scale_.dynamic) scale_.overflowed();
    return result;
  }
  scale_.succeeded();
  if (options_.train.clip_norm > 0 && result.gradient_norm > options_.train.clip_norm)
    gradients.mul_(options_.train.clip_norm / result.gradient_norm);
  optimizer_.step(lr);
  if (!network_.options().freeze_backbone) p.update_running();
  p.refresh_compute_copies();
  return result;
}

TrainStep::Options step_options(const Config& config, const LossWeights& weights,
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
