// Watches a run's speed: each rank's own time per step, waits, use of GPU and
// host. Names a straggler and its cause while the run goes on, and draws the
// table of ranks at its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/placement.hpp"
#include "chexnet/comm/watch/straggler.hpp"
#include "chexnet/core/profiler.hpp"
#include "chexnet/launch/machine/usage_monitor.hpp"
#include "chexnet/report/metrics_log.hpp"

namespace chexnet {

class RunWatch {
 public:
  struct Machine {
    const std::vector<PlacementRow>& placements;  // of all ranks
    std::string gpu_uuid;  // of this rank; empty where there is none
    int threads = 0;       // that compute; 0 where a GPU does
  };
  // `metrics` is null but on rank 0.
  RunWatch(Communicator& comm, const Profiler& profiler, MetricsLog* metrics,
           const Machine& machine);

  // After each step. Collective every tenth time.
  void step_done(int64_t step);
  // Time between two steps (evaluation, checkpoint) is no rank's own time.
  void skip();

  // Collective: the table of ranks with its mean, and the rule for GPU
  // utilization; on rank 0, else empty.
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
  double written_s_ = 0;
  int64_t steps_ = 0;
};

}  // namespace chexnet
