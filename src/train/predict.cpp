// A split of n images on R ranks. Rank r scores the images r, r + R, r + 2R, …,
// so what it sends is in its own order, and image i is found as line i / R of
// rank i % R:
//
//   rank 0: | 0 | 3 | 6 |   a line: K logits, then one flag (1 = damaged, no
//   rank 1: | 1 | 4 | 7 |   logits that count)
//   rank 2: | 2 | 5 | - |   the end is padding, which is computed and not sent
//
// Every rank gets every line and puts the prediction together by itself, so all
// of them agree on what is not finite without asking again.
#include "chexnet/train/predict.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/data/damage.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/train/batch_tensors.hpp"
#include "chexnet/train/batch_upload.hpp"
#include "chexnet/train/host_copy.hpp"
#include "chexnet/train/thread_scope.hpp"

namespace chexnet {
namespace {

// What happened, without what to do about it.
std::string reason_of(const std::string& message) {
  return message.substr(0, message.find(". Hint: "));
}

[[noreturn]] void refuse_not_finite(const Split& split, std::size_t not_finite,
                                    std::size_t all) {
  throw NumericError(
      "[evaluate] the " + split.name + " split: " + std::to_string(not_finite) +
      " of " + std::to_string(all) +
      " logits are not finite: the network has diverged. Hint: start a new run "
      "with a lower train.lr or with train.clip_norm; earlier checkpoints are "
      "untouched");
}

// What this rank found out about its images.
struct OwnPart {
  std::vector<double> lines;         // [its images, K + 1]
  std::vector<std::string> damaged;  // messages, in its order
};

// A batch whose logits are computed: what stays of it when the loader has gone
// on.
struct UnderWay {
  std::vector<Sample> samples;
  std::vector<std::string> errors;
  HostCopy logits;  // double [its images, K]

  UnderWay(const Batch& batch, const at::Tensor& computed)
      : samples(batch.samples),
        errors(batch.errors),
        logits(computed.to(at::kDouble)) {}
};

// Waits for the device.
void add_lines(UnderWay& batch, OwnPart& own) {
  const at::Tensor& logits = batch.logits.wait();
  const auto findings = static_cast<std::size_t>(logits.size(1));
  for (std::size_t i = 0; i < batch.samples.size(); ++i) {
    if (batch.samples[i].padding) continue;
    const double* from = logits.const_data_ptr<double>() + i * findings;
    own.lines.insert(own.lines.end(), from, from + findings);
    own.lines.push_back(batch.errors[i].empty() ? 0 : 1);
  }
  for (const auto& error : batch.errors) {
    if (error.empty()) continue;
    log_warning(error);
    own.damaged.push_back(error);
  }
}

// Nothing on all ranks when any of them wants to stop. Collective. While a GPU
// computes a batch, the host takes in the next one; the logits are read when
// that one is launched.
std::optional<OwnPart> score_own_part(const RunContext& run, const Split& split,
                                      const std::function<bool()>& stop) {
  const auto ranks = static_cast<std::size_t>(run.comm.size());
  const auto batch = static_cast<std::size_t>(run.config.eval.batch);
  const std::size_t per_rank = (split.rows.size() + ranks - 1) / ranks;
  const std::size_t batches = (per_rank + batch - 1) / batch;

  const DataConfig& data = run.config.data;
  const ImageReader reader(*run.dataset.images, evaluation_preprocessing(data),
                           Augmentation::none(), 0);
  const EvalSampler sampler(split.rows, run.comm.rank(), run.comm.size());
  Loader loader(run.dataset.manifest, reader, sampler,
                loader_options(data, static_cast<int>(batch), reader.source(),
                               run.device.cores),
                run.device.batch_memory());

  Progress progress(run.comm.rank() == 0);
  BatchUpload upload(run.device.where);
  // A CPU's logits are read at once, before its memory is used again.
  const std::size_t behind = run.device.where.is_cpu() ? 0 : 1;
  std::deque<UnderWay> under_way;
  OwnPart own;
  const double start = now_s();
  for (std::size_t b = 0; b < batches; ++b) {
    const bool stops = any_rank(run.comm, stop());
    upload.wait();  // the loader fills the last batch's memory anew, or ends
    if (stops) {
      progress.clear();
      return std::nullopt;
    }
    const Batch& next = loader.next();
    const BatchTensors tensors = upload.upload(tensors_of(next));
    under_way.emplace_back(
        next, run.network.forward(tensors.images, Mode::kInference));
    if (under_way.size() > behind) {
      add_lines(under_way.front(), own);
      under_way.pop_front();
    }
    const double done =
        static_cast<double>(b + 1) / static_cast<double>(batches);
    progress.show("evaluating " + split.name + ": " +
                  percent_and_time_left(done, now_s() - start));
  }
  for (UnderWay& last : under_way) add_lines(last, own);
  progress.clear();
  return own;
}

// Puts the lines of all ranks together, in the split's order.
class Assembly {
 public:
  Assembly(const RunContext& run, const Split& split)
      : run_(run), split_(split) {
    result_.predictions.findings = run.dataset.manifest.findings;
  }

  // `line`: K logits.
  void add_scored(std::size_t row, const double* line) {
    const float* labels = add_labels(row, "");
    for (std::size_t k = 0; k < findings(); ++k) {
      result_.predictions.probabilities.push_back(1.0 /
                                                  (1.0 + std::exp(-line[k])));
      if (!std::isfinite(line[k])) {
        ++not_finite_;
        continue;
      }
      if (std::isnan(labels[k])) continue;
      const LossWeights& weights = run_.weights;
      loss_ += entry_loss(line[k], labels[k], weights.positive[k],
                          weights.negative[k]);
      ++entries_;
    }
  }

  void add_damaged(std::size_t row, const std::string& message) {
    add_labels(row, reason_of(message));
    auto& probabilities = result_.predictions.probabilities;
    probabilities.insert(probabilities.end(), findings(),
                         std::numeric_limits<double>::quiet_NaN());
  }

  SplitPrediction finish() {
    if (not_finite_ > 0)
      refuse_not_finite(split_, not_finite_, split_.rows.size() * findings());
    result_.loss = entries_ > 0 ? loss_ / entries_
                                : std::numeric_limits<double>::quiet_NaN();
    return std::move(result_);
  }

 private:
  std::size_t findings() const { return run_.dataset.manifest.finding_count(); }
  const float* add_labels(std::size_t row, std::string reason) {
    const Manifest& manifest = run_.dataset.manifest;
    Predictions& p = result_.predictions;
    p.images.push_back(manifest.images[row]);
    if (manifest.knows_patients) p.patients.push_back(manifest.patients[row]);
    const float* labels = manifest.scored_row(row);
    p.labels.insert(p.labels.end(), labels, labels + findings());
    p.reasons.push_back(std::move(reason));
    return labels;
  }
  const RunContext& run_;
  const Split& split_;
  SplitPrediction result_;
  double loss_ = 0, entries_ = 0;
  std::size_t not_finite_ = 0;
};

}  // namespace

std::optional<SplitPrediction> predict_split(
    const RunContext& run, const Split& split,
    const std::function<bool()>& stop) {
  assert(run.weights.positive.size() == run.dataset.manifest.finding_count());
  const ThreadScope threads = evaluation_threads(run);
  const auto own = score_own_part(run, split, stop);
  if (!own) return std::nullopt;
  const std::size_t images = split.rows.size();
  const DamageByRank damage =
      accept_damage(DamagePolicy::of(run.config.data), own->damaged, images,
                    split.name, "", run.comm);

  const auto parts = run.comm.all_gather(std::as_bytes(std::span(own->lines)));
  const auto ranks = parts.size();
  std::vector<std::size_t> next_message(ranks, 0);
  std::vector<double> line(run.dataset.manifest.finding_count() + 1);
  const std::size_t line_bytes = line.size() * sizeof(double);
  Assembly assembly(run, split);
  for (std::size_t i = 0; i < images; ++i) {
    const std::size_t rank = i % ranks;
    std::memcpy(line.data(), parts[rank].data() + i / ranks * line_bytes,
                line_bytes);
    if (line.back() == 0)
      assembly.add_scored(split.rows[i], line.data());
    else
      assembly.add_damaged(split.rows[i], damage[rank][next_message[rank]++]);
  }
  return assembly.finish();
}

}  // namespace chexnet
