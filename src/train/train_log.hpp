// What a run reports every run.log_every steps: a `train` line of metrics, and
// the progress line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/train/run/train_state.hpp"
#include "chexnet/train/step_outcomes.hpp"

namespace chexnet {

class TrainLog {
 public:
  // `metrics` is null but on rank 0. `batch`: images of all ranks.
  TrainLog(Communicator& comm, MetricsLog* metrics, int64_t batch);
  // `unlogged`: steps before `step` that are in no line yet.
  void begin(int64_t step, int64_t total_steps, uint64_t images_of_epoch,
             const UnloggedSteps& unlogged = {});
  // Of each step.
  void add(const StepResult& result);
  // Collective: steps since the last line.
  UnloggedSteps unlogged();
  // Collective. `job_left_s` of rank 0.
  void write(const Loader& loader, const TrainState& state, double lr,
             std::optional<double> job_left_s);
  // write(), where a step came since begin() and the last line. The resume
  // cuts this line: its own first one holds these steps, too.
  void write_at_stop(const Loader& loader, const TrainState& state, double lr,
                     std::optional<double> job_left_s);
  // So many seconds since the last line were no training.
  void leave_out(double seconds) { interval_.start_s += seconds; }
  // All time since the last line was no training.
  void skip(const Loader& loader);
  // Ends the progress line, so that something else can be printed.
  void clear() { progress_.clear(); }

  double images_per_s() const { return images_per_s_; }  // since begin()

 private:
  // Sums since the last line.
  struct Interval {
    double loss = 0, labeled = 0, allreduce_wait_s = 0, data_wait_before_s = 0,
           start_s = 0, gradient_norm = 0;
    int64_t steps = 0, skipped = 0;
    int64_t steps_before = 0;  // of them, before begin()
    uint64_t stalls_before = 0;
  };
  std::string progress_text(const TrainState& state, double loss, double rate,
                            double wait_fraction) const;
  Communicator& comm_;
  MetricsLog* metrics_;
  double batch_;
  Progress progress_;
  Interval interval_;
  uint64_t stalls_ = 0;  // so far, of the rank that had most in each interval
  int64_t start_step_ = 0, total_steps_ = 0;
  uint64_t images_ = 0;  // of an epoch
  double start_s_ = 0, images_per_s_ = 0;
};

}  // namespace chexnet
