// Watches a run's speed: each rank's own time per step, waits, use of GPU and
// host. Names a straggler and its cause while the run goes on, and draws the
// table of ranks at its end.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/placement.hpp"
#include "chexnet/comm/watch/straggler.hpp"
#include "chexnet/core/profiler.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/launch/machine/usage_monitor.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/train/run/overlap.hpp"

namespace chexnet {

class RunWatch {
 public:
  struct Machine {
    const std::vector<PlacementRow>& placements;  // of all ranks
    std::string gpu_uuid;   // of this rank; empty where there is none
    int threads = 0;        // that compute; 0 where a GPU does
    int64_t batch = 0;      // images of a step, all ranks
    double peak_flops = 0;  // of this rank's GPU, a second; 0: not known
  };
  // `metrics` is null but on rank 0.
  RunWatch(Communicator& comm, const Profiler& profiler, MetricsLog* metrics,
           const Machine& machine);

  // After each step. Collective every tenth time. `flops_per_image`: of
  // training on an image.
  void step_done(int64_t step, double flops_per_image);
  // Time between two steps (evaluation, checkpoint) is no rank's own time.
  void skip();
  // What was waited since counts as time of the step before.
  void count_wait();
  // Of this rank's steps so far, and of its loader.
  StepTimes times(const Loader::Stats& loader) const;

  // Collective: writes what the GPUs did since the watch began, and returns it
  // as two sentences on rank 0; empty without a GPU.
  std::string tell_gpus(int64_t step);
  // Collective: the table of ranks with its mean, and tell_gpus(); on rank 0,
  // else empty.
  std::string summary(int64_t step);

 private:
  struct Mark {
    Profiler::Seconds seconds{};
    double cpu_s = 0;
  };
  struct Figures;  // of all ranks, for the metrics
  Mark mark() const;
  void count_until(const Mark& now);  // as of steps, since last_
  void exchange(int64_t step);
  // Of all ranks' usage_.whole(), [rank]; MetricFields of a `gpus` event, empty
  // without a GPU. Rank 0.
  MetricFields gpu_fields(const std::vector<nlohmann::json>& all) const;
  double cpu_fraction() const;  // of this window
  void warn_of(const StragglerWatch::Alarm& alarm, int64_t step);
  Communicator& comm_;
  const Profiler& profiler_;
  MetricsLog* metrics_;
  const std::vector<PlacementRow>& placements_;
  int threads_;
  UsageMonitor monitor_;
  StragglerWatch watch_;
  Mark last_, window_start_;
  Profiler::Seconds of_steps_{};        // without what lies between two steps
  std::vector<double> own_s_, data_s_;  // of this window's steps
  double written_s_ = 0, gpus_written_s_ = 0;
  const double begin_s_;
  int64_t steps_ = 0;
  const int64_t batch_;
  const double peak_flops_;
  double flops_ = 0;  // of all steps and ranks
};

}  // namespace chexnet
