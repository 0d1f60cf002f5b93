// One step of the loop, and who takes part:
//
//   next_batch   the loader's next, ready or waited for; none where this rank
//                was asked to stop
//   agree        one sum over all ranks: labels, damaged images, who was asked
//                to stop, or for a timeline
//   step_on      forward, backward, all-reduce, optimizer (train/step.cpp);
//                position moves on. On a GPU the host only launches them, and
//                reads the result of the step before
//   after_step   a metrics line, the ranks' weights compared, at an epoch's
//                end a checkpoint and the evaluation of its weights
//                (epoch_end.cpp)
//
// So a GPU computes step k while the host takes the batch of step k+1 and the
// ranks agree about it. Every branch depends on agree() or on reduced gradients
// alone, so all ranks take the same one without asking again.
#include "training_loop.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "batch_tensors.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/model/engine/network_spec.hpp"
#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/library_error.hpp"
#include "chexnet/train/model_metadata.hpp"
#include "chexnet/train/precision.hpp"
#include "rank_agreement.hpp"
#include "training_stream.hpp"

namespace chexnet {
namespace {

// Steps in a row whose gradient may be not finite, the last of which ends the
// run.
constexpr int kSkippedWhileScaling = 20;
int most_skipped(const TrainConfig& config) {
  return config.not_finite == OnNonFinite::kSkip ? 10 : 1;
}

// The largest micro-batch of this rank is measured only where no other rank
// takes part.
FullStep full_step(const TrainingContext& run, int64_t images) {
  const NetworkOptions& network = run.network.options();
  FullStep step{run.decisions.batch,
                images,
                run.comm.size(),
                {},
                can_recompute(network) && !network.recompute};
  const bool alone = !run.config.model.sync_batchnorm || run.comm.size() == 1;
  if (alone && run.device.cuda != nullptr)
    step.fitting =
        images_that_fit(run.config, run.network, *run.device.cuda, images);
  return step;
}

// To train on it: backward takes twice as many multiply-adds as forward, and
// frozen parts have none.
double flops_per_image(const TrainingContext& run) {
  const auto multiply_adds = [&](int first_part) {
    return forward_multiply_adds(
        run.network.spec(), static_cast<int>(run.config.data.crop), first_part);
  };
  const int frozen = frozen_parts(run.network.options().frozen);
  return 2 * (multiply_adds(kStemPart) + 2 * multiply_adds(frozen));
}

}  // namespace

TrainingLoop::TrainingLoop(Parts parts, TrainStep& step, TrainState state)
    : parts_(parts),
      step_(step),
      state_(std::move(state)),
      upload_(parts.device.where),
      log_(parts.comm, parts.metrics, parts.decisions.batch),
      watch_(
          parts.comm, parts.profiler, parts.metrics,
          {.placements = parts.device.placements,
           .gpu_uuid = parts.device.gpu.uuid,
           .threads = parts.device.cuda == nullptr ? parts.device.threads : 0,
           .batch = parts.decisions.batch,
           .peak_flops = peak_flops(parts.device.gpu,
                                    parts.network.options().precision)}),
      flops_per_image_(flops_per_image(parts)),
      steps_known_(state_.step) {
  if (parts_.comm.rank() == 0)
    description_ = model_metadata(parts_.config, parts_.dataset);
  if (frozen_for_now()) step_.freeze();
  if (parts_.comm.size() > 1 && state_.order.bucket_mb == 0) {
    tuner_.emplace();
    step_.set_bucket_mb(tuner_->bucket_mb());
  } else {
    record_steps();
  }
}

bool TrainingLoop::frozen_for_now() const {
  return state_.epoch < parts_.config.model.freeze_epochs;
}

void TrainingLoop::thaw() {
  step_.end_recordings();
  step_.thaw();
  flops_per_image_ = flops_per_image(parts_);
  if (!tuner_) record_steps();
  if (parts_.comm.rank() != 0) return;
  log_.clear();
  log_info(
      formatted("epoch {}: all is trained from here on "
                "(model.freeze_epochs={})",
                state_.epoch + 1, parts_.config.model.freeze_epochs));
}

void TrainingLoop::record_steps() {
  if (parts_.device.cuda != nullptr) step_.record(*parts_.device.cuda);
}

ExitCode TrainingLoop::run() {
  std::optional<Profiler::Span> set_up(std::in_place, &parts_.profiler,
                                       Phase::kSetUp);
  const auto rows = training_rows(parts_.config, parts_.dataset);
  if (const auto& file = parts_.config.train.order_file; !file.empty())
    check_equal_on_ranks(parts_.comm, file,
                         sha256_hex({reinterpret_cast<const char*>(rows.data()),
                                     rows.size() * sizeof(rows[0])}));
  images_ = rows.size();
  total_steps_ =
      total_steps(parts_.config.train, parts_.decisions.batch, images_);
  if (state_.evaluation_due && !evaluate()) return stopped();
  damage_.emplace(DamagePolicy::of(parts_.config.data), images_,
                  static_cast<uint64_t>(parts_.decisions.batch));
  const TrainingStream stream(parts_, rows, parts_.decisions.batch,
                              state_.position);
  Loader loader(parts_.dataset.manifest, stream.reader, *stream.sampler,
                stream.options, parts_.device.batch_memory());

  log_.begin(state_.step, total_steps_, images_, state_.unlogged);
  set_up.reset();
  watch_.skip();
  loader.record(parts_.profiler.recording());
  const ExitCode code = run_steps(loader);
  loader_stats_ = loader.stats();
  return code;
}

ExitCode TrainingLoop::run_steps(Loader& loader) {
  double lr = 0;  // of the step before
  while (state_.step < total_steps_ && !ends_early()) {
    const int64_t step = state_.step + 1;
    parts_.profiler.set_step(step);
    if (parts_.timeline.begins_at(step)) {
      finish_steps();  // the one before, whose time this wait is
      watch_.count_wait();
    }
    if (parts_.timeline.begin_step(step, watch_.times(loader.stats())))
      loader.record(parts_.profiler.recording());
    const Batch* batch = next_batch(loader);
    const Agreement agreed = agree(batch);
    if (agreed.stop) {
      finish_steps();
      log_.write_at_stop(loader, state_, lr, parts_.stop.job_left_s());
      checkpoint();
      return stopped();
    }
    if (agreed.timeline) parts_.timeline.take_request(step);
    lr = step_on(*batch, agreed.labeled);
    end_timeline(loader);
    if (!after_step(loader, lr)) return stopped();
  }
  say_how_it_ended();
  return ExitCode::kDone;
}

// Before the work after a step, which is no part of it.
void TrainingLoop::end_timeline(Loader& loader) {
  const double start = now_s();
  if (!parts_.timeline.end_step(state_.step, watch_.times(loader.stats())))
    return;
  loader.record(nullptr);
  log_.leave_out(now_s() - start);
  watch_.skip();
}

std::optional<Overlap> TrainingLoop::overlap() {
  const StepTimes times = watch_.times(loader_stats_);
  if (times.steps == 0) return std::nullopt;
  return mean_overlap(parts_.comm, times);
}

double TrainingLoop::step_on(const Batch& batch, double labeled) {
  const double lr = learning_rate(parts_.config.train, parts_.decisions.batch,
                                  state_.position, images_, state_.plateau);
  const BatchTensors tensors = [&] {
    const Profiler::Span span(copies(), Phase::kCopy);
    return upload_.upload(tensors_of(batch));
  }();
  const double start = now_s();
  const auto result = [&] {
    try {
      return step_.run(tensors.images, tensors.labels, labeled, lr,
                       tensors.sample_weights);
    } catch (const c10::OutOfMemoryError& e) {
      step_.end_recordings();  // or less would fit
      throw DeviceError(out_of_memory_text(
          e, parts_.config.train, full_step(parts_, tensors.images.size(0))));
    }
  }();
  if (tuner_) tune_buckets(now_s() - start);
  ++state_.step;
  state_.position += static_cast<uint64_t>(parts_.decisions.batch);
  if (result) take(*result);
  // The work after this is no part of a step, so the device's time is counted
  // before.
  pause_ = pause_after_step();
  if (pause_.any() || parts_.timeline.ends_at(state_.step)) finish_steps();
  watch_.step_done(state_.step, flops_per_image_);
  return lr;
}

TrainingLoop::Pause TrainingLoop::pause_after_step() const {
  const Config& config = parts_.config;
  const int64_t every = config.checkpoint.every_steps;
  const int64_t epochs = epochs_complete(config.train, state_.step,
                                         parts_.decisions.batch, images_);
  return {.run_ends = state_.step == total_steps_,
          .epoch_ends = epochs > state_.epoch,
          .checkpoint = every > 0 && state_.step % every == 0};
}

void TrainingLoop::take(const StepResult& result) {
  ++steps_known_;
  count_skipped(result);
  log_.add(result);
}

void TrainingLoop::finish_steps() {
  while (const auto result = step_.finish()) take(*result);
}

void TrainingLoop::log(const Loader& loader, double lr) {
  log_.write(loader, state_, lr, parts_.stop.job_left_s());
}

bool TrainingLoop::after_step(const Loader& loader, double lr) {
  const Config& config = parts_.config;
  const bool long_one = pause_.run_ends || pause_.epoch_ends;
  const int64_t epoch_before = state_.epoch;
  const bool was_frozen = frozen_for_now();
  state_.epoch = epochs_complete(config.train, state_.step,
                                 parts_.decisions.batch, images_);

  if (long_one || state_.step % config.run.log_every == 0) {
    finish_steps();
    log(loader, lr);
  }
  const int64_t verify_every = config.train.verify_every;
  if (verify_every > 0 && state_.step % verify_every == 0) verify_ranks();
  if (long_one) {
    if (!end_of_epoch(epoch_before)) return false;
    if (was_frozen && !frozen_for_now() && !pause_.run_ends) thaw();
    // Or the others would wait for rank 0's files in their next step.
    parts_.comm.barrier();
    log_.skip(loader);
    watch_.skip();
    return true;
  }
  if (pause_.checkpoint) {
    const double start = now_s();
    checkpoint();
    log_.leave_out(now_s() - start);
    watch_.skip();
  }
  return true;
}

uint64_t TrainingLoop::own_sum() {
  return state_sum(parts_.network.parameters(), step_);
}

std::optional<uint64_t> TrainingLoop::verify_ranks() {
  if (parts_.config.train.verify_every == 0) return {};
  const uint64_t sum = own_sum();
  if (parts_.comm.size() > 1)
    check_ranks_agree(parts_.comm, sum, parts_.device.placements, state_.step);
  return sum;
}

void TrainingLoop::say_how_it_ended() {
  log_.clear();
  if (ends_early() && parts_.comm.rank() == 0)
    log_info(!state_.lost.empty()
                 ? "train.rungs: " + state_.lost
                 : "early stop: no better checkpoint in " +
                       counted(state_.epochs_without_best, "epoch"));
  const std::string summary = watch_.summary(state_.step);
  if (!summary.empty()) log_info(summary);
}

Profiler* TrainingLoop::copies() {
  return parts_.device.where.is_cpu() ? nullptr : &parts_.profiler;
}

const Batch* TrainingLoop::next_batch(Loader& loader) {
  {
    const Profiler::Span span(copies(), Phase::kCopy);
    upload_.wait();  // the loader refills the last batch's memory
  }
  const Profiler::Span span(&parts_.profiler, Phase::kDataWait);
  return loader.next_unless(
      [&] { return parts_.stop.asked(longest_checkpoint_s_); });
}

TrainingLoop::Agreement TrainingLoop::agree(const Batch* batch) {
  const double asks = parts_.timeline.asked() ? 1 : 0;
  std::array<double, 5> votes = {0, 0, 0, 1, asks};
  if (batch != nullptr) {
    const auto own = damage_->in(*batch, state_.position);
    votes = {labels_in(*batch), own.this_epoch, own.next_epoch, 0, asks};
  }
  parts_.comm.all_reduce(votes, ReduceOp::kSum);
  if (votes[3] > 0) return {.stop = true};  // no step: nothing is refused
  if (const DamageCounter::Count damaged{votes[1], votes[2]};
      damaged.all() > 0) {
    refuse_damaged(parts_, *batch, damaged.all());
    damage_->add(damaged, state_.position);
  }
  return {.labeled = votes[0], .timeline = votes[4] > 0};
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
  record_steps();
}

void TrainingLoop::count_skipped(const StepResult& result) {
  if (result.applied) {
    skipped_in_a_row_ = 0;
    return;
  }
  // Each rank has another loss, but its consequence must be the same on all.
  const std::string without_loss = ranks_without_loss(result);
  // Under fp16 a few overflows in a row are how the loss scale is found. No
  // loss scale mends a loss that is not finite.
  const bool scaling = step_.scales_dynamically() && without_loss.empty();
  const int most =
      scaling ? kSkippedWhileScaling : most_skipped(parts_.config.train);
  const std::string whose =
      without_loss.empty() ? "" : ", nor is the loss of " + without_loss;
  const std::string what = "[train] step " + std::to_string(steps_known_) +
                           ": the gradient is not finite" + whose;
  if (++skipped_in_a_row_ >= most)
    throw NumericError(
        "{}. Hint: {}lower train.lr, set train.clip_norm, or look at the data; "
        "the last checkpoint is untouched",
        what,
        parts_.config.launch.gradient_compression == GradientCompression::kFp16
            ? "launch.gradient_compression=bf16, as fp16 ends at 65504; "
            : "");
  if (parts_.comm.rank() != 0) return;
  if (step_.scales_dynamically() && !without_loss.empty())
    log_warning(what +
                ", which no loss scale mends; step skipped. Hint: "
                "train.precision=bf16 or fp32, or look at the weights and the "
                "data");
  else if (!scaling)
    log_warning(what + ", step skipped");
}

std::string TrainingLoop::ranks_without_loss(const StepResult& result) {
  const auto& own =
      parts_.device.placements.at(static_cast<size_t>(parts_.comm.rank()));
  std::string ranks;
  for (const auto& rank : gather_text(
           parts_.comm, std::isfinite(result.loss_sum) ? "" : named(own)))
    if (!rank.empty()) ranks += (ranks.empty() ? "" : ", ") + rank;
  return ranks;
}

bool TrainingLoop::ends_early() const {
  const TrainConfig& config = parts_.config.train;
  const int64_t patience = config.early_stop_epochs;
  return (patience > 0 && state_.epochs_without_best >= patience) ||
         (!config.rungs.empty() && !state_.lost.empty());
}

ExitCode TrainingLoop::stopped() {
  log_.clear();
  if (const std::string gpus = watch_.tell_gpus(state_.step); !gpus.empty())
    log_info(gpus);
  return parts_.stop.stopped(state_.step, parts_.metrics);
}

}  // namespace chexnet
