#include "chexnet/train/predict.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/data/damage.hpp"
#include "chexnet/data/loader.hpp"

namespace chexnet {
namespace {

// Sets LibTorch's threads for a scope.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
  }
  ~ThreadScope() { at::set_num_threads(before_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

double entry_loss(double z, float label, double positive, double negative) {
  const double tail = std::log1p(std::exp(-std::abs(z)));
  return label > 0.5f ? positive * (std::max(-z, 0.0) + tail)
                      : negative * (std::max(z, 0.0) + tail);
}

// What happened, without what to do about it.
std::string reason_of(const std::string& message) {
  return message.substr(0, message.find(". Hint: "));
}

[[noreturn]] void refuse_not_finite(const Split& split, std::size_t not_finite, std::size_t all) {
  throw NumericError("[evaluate] the " + split.name + " split: " + std::to_string(not_finite) +
                     " of " + std::to_string(all) +
                     " logits are not finite: the network has diverged. Hint: start a new run "
                     "with a lower train.lr or with train.clip_norm; earlier checkpoints are "
                     "untouched");
}

}  // namespace

std::optional<SplitPrediction> predict_split(const Config& config, const Dataset& dataset,
                                             const Split& split, Network& network,
                                             Communicator& comm, const Device& device,
                                             const LossWeights& weights,
                                             const std::function<bool()>& stop) {
  const ThreadScope threads(config.eval.threads > 0 ? static_cast<int>(config.eval.threads)
                                                    : device.threads);
  const std::size_t findings = dataset.manifest.finding_count();
  const auto images = split.rows.size(), ranks = static_cast<std::size_t>(comm.size());
  const auto batch = static_cast<std::size_t>(config.eval.batch);
  const std::size_t per_rank = (images + ranks - 1) / ranks,
                    batches = (per_rank + batch - 1) / batch;

  const ImageReader reader(*dataset.images, evaluation_preprocessing(config.data),
                           Augmentation::none(), 0);
  const EvalSampler sampler(split.rows, comm.rank(), comm.size());
  Loader loader(dataset.manifest, reader, sampler,
                loader_options(config.data, static_cast<int>(batch), reader.source(), device.cores),
                device.batch_memory());
  Progress progress(comm.rank() == 0);
  std::vector<double> own;           // [per rank, K] logits, then one flag: 1 = damaged
  std::vector<std::string> damaged;  // messages of this rank's, in its order
  const double start = now_s();
  for (std::size_t b = 0; b < batches; ++b) {
    if (any_rank(comm, stop())) {
      progress.clear();
      return std::nullopt;
    }
    const Batch& data = loader.next();
    for (const auto& error : data.errors)
      if (!error.empty()) log_warning(error);
    std::ranges::copy_if(data.errors, std::back_inserter(damaged),
                         [](const auto& error) { return !error.empty(); });
    const std::int64_t side = config.data.crop;
    const at::Tensor x = at::from_blob(data.images.data(), {data.size, 1, side, side}, at::kByte);
    const at::Tensor logits =
        network.forward(x, Mode::kInference).to(at::kCPU, at::kDouble).contiguous();
    for (std::size_t i = 0; i < batch; ++i) {
      if (data.samples[i].padding) continue;
      const double* from = logits.const_data_ptr<double>() + i * findings;
      own.insert(own.end(), from, from + findings);
      own.push_back(data.errors[i].empty() ? 0 : 1);
    }
    const double done = static_cast<double>(b + 1) / static_cast<double>(batches);
    progress.show("evaluating " + split.name + ": " + percent_and_time_left(done, now_s() - start));
  }
  progress.clear();
  const DamageByRank damage =
      accept_damage(DamagePolicy::of(config.data), damaged, images, split.name, "", comm);
  std::vector<std::size_t> next_message(ranks, 0);

  SplitPrediction out;
  Predictions& p = out.predictions;
  p.findings = dataset.manifest.findings;
  const auto parts = comm.all_gather(std::as_bytes(std::span(own)));
  double loss = 0, entries = 0;
  std::size_t not_finite = 0;  // every rank sees all logits, so all agree
  std::vector<double> line(findings + 1);
  for (std::size_t i = 0; i < images; ++i) {
    std::memcpy(line.data(), parts[i % ranks].data() + i / ranks * line.size() * sizeof(double),
                line.size() * sizeof(double));
    p.images.push_back(dataset.manifest.images[split.rows[i]]);
    const float* labels = dataset.manifest.scored_row(split.rows[i]);
    p.labels.insert(p.labels.end(), labels, labels + findings);
    const bool scored = line[findings] == 0;
    p.reasons.push_back(scored ? "" : reason_of(damage[i % ranks][next_message[i % ranks]++]));
    if (!scored) {
      p.probabilities.insert(p.probabilities.end(), findings,
                             std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    for (std::size_t k = 0; k < findings; ++k) {
      const float label = labels[k];
      p.probabilities.push_back(1.0 / (1.0 + std::exp(-line[k])));
      if (!std::isfinite(line[k])) ++not_finite;
      if (std::isnan(label)) continue;
      loss += entry_loss(line[k], label, weights.positive[k], weights.negative[k]);
      ++entries;
    }
  }
  if (not_finite > 0) refuse_not_finite(split, not_finite, images * findings);
  out.loss = entries > 0 ? loss / entries : std::numeric_limits<double>::quiet_NaN();
  return out;
}

}  // namespace chexnet
