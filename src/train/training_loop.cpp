#include "chexnet/train/training_loop.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/resources.hpp"
#include "chexnet/data/pipeline.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/predict.hpp"

namespace chexnet {
namespace {

std::string scientific(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  return text.data();
}

}  // namespace

TrainingLoop::TrainingLoop(Parts parts, TrainStep& step, TrainState state)
    : parts_(parts),
      step_(step),
      state_(std::move(state)),
      total_steps_(0),
      log_(parts.comm, parts.metrics, parts.config.train.batch),
      watch_(parts.comm, parts.recorder, parts.metrics, parts.device.seats, parts.device.gpu.uuid,
             parts.device.cuda == nullptr ? parts.device.threads : 0) {
  if (parts_.comm.size() > 1 && state_.order.bucket_mb == 0) {
    tuner_.emplace();
    step_.set_bucket_mb(tuner_->bucket_mb());
  }
  if (parts_.comm.rank() == 0) clock_ = std::make_unique<JobClock>(parts_.config.launch);
}

ExitCode TrainingLoop::run() {
  const Config& config = parts_.config;
  const bool parity = !config.train.order_file.empty();
  const auto rows = training_rows(config, parts_.dataset);
  const auto images = static_cast<std::uint64_t>(rows.size());
  total_steps_ = total_steps(config.train, images);

  const auto batch = static_cast<std::uint64_t>(config.train.batch);
  damage_.emplace(DamagePolicy::of(config.data), images, batch);
  const auto seed = static_cast<std::uint64_t>(config.run.seed);
  const int per_rank = static_cast<int>(batch) / parts_.comm.size();
  const auto sampler =
      training_sampler(config.data, parts_.dataset.images->index(), rows, parity, seed,
                       state_.position, batch, parts_.comm.rank(), parts_.comm.size());
  const ImageReader reader(*parts_.dataset.images, training_preprocessing(config.data),
                           parity ? Augmentation::none() : augmentation_of(config.data), seed);
  Loader loader(parts_.dataset.manifest, reader, *sampler,
                loader_options(config.data, per_rank, reader.source(), parts_.device.cores),
                parts_.device.batch_memory());

  log_.begin(state_.step, total_steps_);
  while (state_.step < total_steps_) {
    parts_.recorder.set_step(state_.step + 1);
    const Batch& data = next_batch(loader);
    const Agreement agreed = agree(data);
    if (agreed.stop) {
      log_.clear();
      checkpoint();
      if (parts_.metrics != nullptr)
        parts_.metrics->write("stop", state_.step, {{"reason", stop_reason_}});
      if (parts_.comm.rank() == 0)
        log_info(stop_reason_ + " at step " + std::to_string(state_.step) +
                 ": checkpoint written, exit 75; go on with --resume auto");
      return ExitCode::kRequeue;
    }
    const double lr = learning_rate(config.train, state_.position, images, state_.plateau);
    const std::int64_t side = config.data.crop;
    const at::Tensor x = at::from_blob(data.images.data(), {data.size, 1, side, side}, at::kByte);
    const at::Tensor y = at::from_blob(
        const_cast<float*>(data.labels.data()),
        {data.size, static_cast<std::int64_t>(parts_.dataset.manifest.finding_count())},
        at::kFloat);
    const double step_start = now_s();
    const TrainStep::Result result = step_.run(x, y, agreed.labelled, lr);
    if (tuner_) tune_buckets(now_s() - step_start);
    count_skipped(result.applied);
    log_.add(result, agreed.labelled);
    ++state_.step;
    state_.position += batch;
    state_.loss_scale = step_.loss_scale();
    watch_.step_done(state_.step);

    const bool last = state_.step == total_steps_;
    const std::int64_t epoch = epochs_complete(state_.step, config.train.batch, images);
    const bool epoch_ends = epoch > state_.epoch;
    state_.epoch = epoch;
    if (last || state_.step % config.run.log_every == 0 || epoch_ends)
      log_.write(loader, state_, lr, clock_ ? clock_->left_s() : std::nullopt);
    if (epoch_ends || last) {
      const std::int64_t every = config.eval.every_epochs;
      end_of_epoch(last || (every > 0 && epoch % every == 0));
      log_.skip(loader);
      watch_.skip();
    } else if (config.checkpoint.every_steps > 0 &&
               state_.step % config.checkpoint.every_steps == 0) {
      checkpoint();
      watch_.skip();
    }
    if (config.train.early_stop_epochs > 0 &&
        state_.evaluations_without_best >= config.train.early_stop_epochs) {
      if (parts_.comm.rank() == 0)
        log_info("early stop: no better checkpoint in " +
                 std::to_string(state_.evaluations_without_best) + " evaluations");
      break;
    }
  }
  log_.clear();
  const std::string summary = watch_.summary(state_.step);
  if (!summary.empty()) log_info(summary);
  return ExitCode::kDone;
}

const Batch& TrainingLoop::next_batch(Loader& loader) {
  const Recorder::Span span(&parts_.recorder, Operation::kDataWait);
  return loader.next();
}

TrainingLoop::Agreement TrainingLoop::agree(const Batch& batch) {
  bool stop = stop_requested();
  if (parts_.comm.rank() == 0) {
    stop_reason_ = stop ? "stopped on request" : reason_to_stop();
    stop = !stop_reason_.empty();
  }
  const auto labelled = std::ranges::count_if(batch.labels, [](float v) { return !std::isnan(v); });
  const auto own = damage_->in(batch, state_.position);
  std::array<double, 4> votes = {static_cast<double>(labelled), own.this_epoch, own.next_epoch,
                                 stop ? 1.0 : 0.0};
  parts_.comm.all_reduce(votes, ReduceOp::kSum);
  if (const DamageCounter::Count damaged{votes[1], votes[2]}; damaged.all() > 0) {
    refuse_damaged(batch, damaged.all());
    damage_->add(damaged, state_.position);
  }
  return {votes[0], votes[3] > 0};
}

std::string TrainingLoop::reason_to_stop() const {
  const Config& config = parts_.config;
  if (parts_.folder.stop_file_exists()) return "stopped by the STOP file";
  if (config.train.max_seconds > 0 && now_s() - log_.start_s() > config.train.max_seconds)
    return "stopped by train.max_seconds";
  const auto left = clock_->left_s();
  if (!left || *left > config.launch.stop_margin_s + longest_checkpoint_s_) return "";
  return "stopped with " + readable_s(std::max(0.0, *left)) + " left of the job's time";
}

// data.corrupt: with `fail` all ranks stop with the same text, with `skip` each damaged image is
// logged and counts as not labelled.
void TrainingLoop::refuse_damaged(const Batch& batch, double damaged) {
  if (parts_.config.data.corrupt == "skip") {
    for (const auto& error : batch.errors)
      if (!error.empty()) log_warning(error + " (skipped)");
    return;
  }
  for (const auto& text : gather_text(parts_.comm, batch.first_error())) {
    if (text.empty()) continue;
    const std::string more =
        damaged > 1 ? " (" + fixed(damaged, 0) + " damaged images in this step)" : "";
    throw DataError(text + more + "; data.corrupt=skip leaves such images out");
  }
}

void TrainingLoop::tune_buckets(double step_s) {
  if (!tuner_->step(step_s, parts_.comm)) return;
  step_.set_bucket_mb(tuner_->bucket_mb());
  if (!tuner_->done()) return;
  state_.order.bucket_mb = tuner_->bucket_mb();
  if (parts_.comm.rank() == 0)
    log_info("gradient buckets of " + fixed(tuner_->bucket_mb(), 0) +
             " MB (launch.bucket_mb: auto)");
  tuner_.reset();
}

void TrainingLoop::count_skipped(bool applied) {
  if (applied) {
    skipped_in_a_row_ = 0;
    return;
  }
  // Under fp16 a few overflows in a row are how the loss scale is found.
  const bool scaling = step_.loss_scale().dynamic;
  const int patience = scaling ? 20 : (parts_.config.train.nan_policy == "skip" ? 10 : 1);
  const std::string what =
      "[train] step " + std::to_string(state_.step + 1) + ": the gradient is not finite";
  if (++skipped_in_a_row_ >= patience)
    throw NumericError(what +
                       ". Hint: lower train.lr, set train.clip_norm, or look at the data; the last "
                       "checkpoint is untouched");
  if (parts_.comm.rank() == 0 && !scaling) log_warning(what + ", step skipped");
}

void TrainingLoop::end_of_epoch(bool evaluate_now) {
  const Config& config = parts_.config;
  if (parts_.metrics != nullptr)
    parts_.metrics->write("epoch", state_.step, {{"epoch", state_.epoch}});
  is_best_ = false;
  if (evaluate_now && !parts_.dataset.splits.val.rows.empty()) evaluate();
  const bool last = state_.step == total_steps_;
  const std::int64_t every = config.checkpoint.every_epochs;
  if (last || is_best_ || (every > 0 && state_.epoch % every == 0)) checkpoint();
  is_best_ = false;  // a later checkpoint inside an epoch is not the best one
}

void TrainingLoop::evaluate() {
  const Recorder::Span span(&parts_.recorder, Operation::kEvaluate);
  const Config& config = parts_.config;
  log_.clear();
  const auto result = predict_split(config, parts_.dataset, parts_.dataset.splits.val,
                                    parts_.network, parts_.comm, parts_.device, parts_.weights);
  const Scores scores = score(result.predictions, config.eval.findings);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double mean = scores.mean_auroc.value_or(nan);
  const double value = config.checkpoint.best == "loss" ? -result.loss : mean;
  const double before = config.checkpoint.best == "loss" ? -state_.best : state_.best;
  is_best_ = !std::isnan(value) && (std::isnan(before) || value > before);
  if (is_best_) {
    state_.best = config.checkpoint.best == "loss" ? result.loss : mean;
    state_.best_step = state_.step;
    state_.evaluations_without_best = 0;
  } else {
    ++state_.evaluations_without_best;
  }
  const bool lowered =
      config.train.schedule == "plateau" && state_.plateau.observe(result.loss, config.train);
  if (parts_.comm.rank() != 0) return;
  std::map<std::string, double> by_finding;
  for (std::size_t k = 0; k < scores.findings.size(); ++k)
    by_finding[scores.findings[k]] = scores.auroc[k].value_or(nan);
  parts_.metrics->write(
      "val", state_.step,
      {{"epoch", state_.epoch},
       {"damaged", static_cast<std::int64_t>(scores.damaged)},
       {"loss", result.loss},
       {"mean_auroc", mean},
       {"mean_auroc_10_positives", mean_auroc_with(scores, 10).value_or(nan)},
       {"any_finding_auroc_mean_logit", scores.any_finding_auroc_mean_logit.value_or(nan)},
       {"auroc", by_finding}});
  log_info("epoch " + std::to_string(state_.epoch) + "  validation loss " + fixed(result.loss, 4) +
           "  mean AUROC " + (scores.mean_auroc ? fixed(mean, 4) : "not defined") +
           (scores.damaged > 0 ? "  of " + images_text(scores) : "") +
           (is_best_ ? "  (best)" : "") +
           (lowered ? "  learning rate x " + scientific(state_.plateau.factor) : ""));
}

void TrainingLoop::checkpoint() {
  const Recorder::Span span(&parts_.recorder, Operation::kCheckpoint);
  const double start = now_s();
  parts_.comm.barrier();  // no rank is ahead into a step that the checkpoint does not have
  if (parts_.comm.rank() == 0) {
    const std::string description = model_description(parts_.config, parts_.dataset);
    parts_.folder.store().save(state_.step, state_.to_json(), is_best_,
                               [&](const std::filesystem::path& folder) {
                                 write_network(folder, parts_.network.parameters(),
                                               step_.optimizer(), state_.step, description);
                               });
    parts_.metrics->write(
        "checkpoint", state_.step,
        {{"epoch", state_.epoch}, {"best", std::string(is_best_ ? "yes" : "no")}});
  }
  parts_.comm.barrier();
  longest_checkpoint_s_ = std::max(longest_checkpoint_s_, now_s() - start);
}

}  // namespace chexnet
