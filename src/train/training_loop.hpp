// The loop over steps: next batch, one agreement of all ranks, step, metrics;
// checkpoint, evaluation and schedule at epoch ends. Returns when the last step
// is done or a stop was requested. Collective.
//
// A checkpoint comes before the evaluation of its weights, which may outlast
// the job; afterwards its results are written into the checkpoint's state. So a
// run that was stopped or killed inside an evaluation loses no step: a resume
// scores the same weights first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "batch_upload.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/data/damage_counter.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/train/predict.hpp"
#include "chexnet/train/run/bucket_tuner.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/run_decisions.hpp"
#include "chexnet/train/run/run_folder.hpp"
#include "chexnet/train/run/run_watch.hpp"
#include "chexnet/train/run/stop_request.hpp"
#include "chexnet/train/run/timeline_recorder.hpp"
#include "chexnet/train/run/train_state.hpp"
#include "chexnet/train/run_context.hpp"
#include "chexnet/train/step.hpp"
#include "train_log.hpp"

namespace chexnet {

class TrainingLoop {
 public:
  struct Parts : TrainingContext {
    MetricsLog* metrics;  // null but on rank 0
    StopRequest& stop;
    TimelineRecorder& timeline;
  };
  TrainingLoop(Parts parts, TrainStep& step, TrainState state);

  ExitCode run();  // kDone or kRequeue
  const TrainState& state() const { return state_; }
  double images_per_s() const { return log_.images_per_s(); }
  // Of the steps of run(); empty: it made none. Collective.
  std::optional<Overlap> overlap();

 private:
  // What all ranks know of a step before it is computed.
  struct Agreement {
    double labeled = 0;  // entries of the global batch
    bool stop = false;
    bool timeline = false;  // some rank wants one
  };
  ExitCode run_steps(Loader& loader);
  const Batch* next_batch(Loader& loader);  // null: asked to stop
  // For spans of copies to the GPU; null on a CPU, where there are none.
  Profiler* copies();
  Agreement agree(const Batch* batch);
  // One step, and what counts it. Returns the rate it was made with.
  double step_on(const Batch& batch, double labeled);
  // The work after a step: metrics line, evaluation, checkpoint. False as
  // end_of_epoch().
  void log(const Loader& loader, double lr);
  bool after_step(const Loader& loader, double lr);
  void end_timeline(Loader& loader);
  uint64_t own_sum();
  // Collective: the sum all ranks agree on; none with train.verify_every=0.
  std::optional<uint64_t> verify_ranks();
  void say_how_it_ended();
  bool frozen_for_now() const;  // model.freeze_epochs
  void thaw();
  // From the next step on, whose buckets do not change any more.
  void record_steps();
  void tune_buckets(double step_s);
  // Takes in the result of the oldest step under way.
  void take(const StepResult& result);
  // Whatever comes between this step and the next one.
  struct Pause {
    bool run_ends = false, epoch_ends = false, checkpoint = false;
    bool any() const { return run_ends || epoch_ends || checkpoint; }
  };
  Pause pause_after_step() const;
  // Waits until the results of all launched steps are known.
  void finish_steps();
  void count_skipped(const StepResult& result);
  // Those whose own loss is not finite, on every rank; empty: none. Collective.
  std::string ranks_without_loss(const StepResult& result);
  // False: a stop was requested, and the evaluation is still due.
  bool end_of_epoch(int64_t epoch_before);
  bool evaluate();
  void score_weights(const SplitPrediction& result);
  void keep_decision_rules(const Predictions& validation);
  // NumericError on every rank where a checkpoint's content would not be
  // finite. Collective.
  void check_finite_state();
  void checkpoint();
  // Of train.rungs, where one is due, by state_.best. Collective.
  void go_through_rung();
  // By train.early_stop_epochs or train.rungs.
  bool ends_early() const;
  ExitCode stopped();

  Parts parts_;
  TrainStep& step_;
  TrainState state_;
  int64_t total_steps_ = 0;
  uint64_t images_ = 0;  // of an epoch; once run() knows the rows
  std::optional<DamageCounter> damage_;  // the same
  BatchUpload upload_;
  TrainLog log_;
  RunWatch watch_;
  std::optional<BucketTuner> tuner_;  // while the bucket size is not chosen
  double longest_checkpoint_s_ = 0, longest_evaluation_s_ = 0;
  int skipped_in_a_row_ = 0;
  Pause pause_;                 // after the step that was made
  double flops_per_image_;      // of a training step
  std::string description_;     // of the model file; on rank 0
  int64_t steps_known_ = 0;     // up to state_.step: the others are launched
  Loader::Stats loader_stats_;  // at the end of the steps
};

}  // namespace chexnet
