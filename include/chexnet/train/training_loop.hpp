// The loop over steps: next batch, one agreement of all ranks, step, metrics; evaluation, schedule
// and checkpoint at epoch ends. Returns when the run is complete or a stop was asked for.
// Collective.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "chexnet/core/error.hpp"
#include "chexnet/data/damage_counter.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/train/bucket_tuner.hpp"
#include "chexnet/train/dataset.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/job_clock.hpp"
#include "chexnet/train/run_folder.hpp"
#include "chexnet/train/run_watch.hpp"
#include "chexnet/train/step.hpp"
#include "chexnet/train/train_log.hpp"
#include "chexnet/train/train_state.hpp"

namespace chexnet {

class TrainingLoop {
 public:
  struct Parts {
    const Config& config;
    const Dataset& dataset;
    Network& network;
    Communicator& comm;
    const Device& device;
    RunFolder& folder;
    MetricsLog* metrics;  // null but on rank 0
    const LossWeights& weights;
    Recorder& recorder;
  };
  TrainingLoop(Parts parts, TrainStep& step, TrainState state);

  ExitCode run();  // kDone or kRequeue
  const TrainState& state() const { return state_; }
  double images_per_s() const { return log_.images_per_s(); }

 private:
  // What all ranks know of a step before it is computed.
  struct Agreement {
    double labelled = 0;  // cells of the global batch
    bool stop = false;
  };
  const Batch& next_batch(Loader& loader);
  Agreement agree(const Batch& batch);
  std::string reason_to_stop() const;  // rank 0; empty: none
  void refuse_damaged(const Batch& batch, double damaged);
  void tune_buckets(double step_s);
  void count_skipped(bool applied);
  void end_of_epoch(bool evaluate_now);
  void evaluate();
  void checkpoint();

  Parts parts_;
  TrainStep& step_;
  TrainState state_;
  std::int64_t total_steps_;
  std::optional<DamageCounter> damage_;  // once run() knows how many images an epoch has
  TrainLog log_;
  RunWatch watch_;
  std::optional<BucketTuner> tuner_;  // while the bucket size is not chosen
  std::unique_ptr<JobClock> clock_;   // rank 0
  std::string stop_reason_;           // rank 0
  double longest_checkpoint_s_ = 0;
  bool is_best_ = false;
  int skipped_in_a_row_ = 0;
};

}  // namespace chexnet
