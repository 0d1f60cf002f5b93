// Whether this rank wants the run to stop, and why: a signal; on rank 0 also
// the STOP file and the end of the job's time. The ranks
// agree on it elsewhere, while images are looked at before the first step, at
// each step and between two batches of an evaluation. Main thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "chexnet/config/config.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/train/run/job_clock.hpp"
#include "chexnet/train/run/run_folder.hpp"

namespace chexnet {

class StopRequest {
 public:
  StopRequest(const Config& config, const RunFolder& folder, bool first_rank);

  // `ahead_s`: seconds of work that could not be finished in less time than the
  // job has left, besides launch.stop_margin_s.
  bool asked(double ahead_s);
  std::optional<double> job_left_s() const;  // rank 0
  // Rank 0, any thread: whether the end of the run, `waited_s` ago, may wait
  // for a command. For ten minutes, but only for launch.stop_margin_s once a
  // signal has asked us to stop, and never past the job's time.
  bool may_wait(double waited_s) const;

  // Once the ranks agreed and the checkpoint of `step` is written: says so, and
  // returns kRequeue.
  ExitCode stopped(int64_t step, MetricsLog* metrics) const;
  // Once the ranks agreed before the first step of this start, which has
  // changed nothing.
  ExitCode stopped_before_training() const;

 private:
  std::string reason_of_rank_0(double ahead_s) const;
  std::string reason() const;
  const Config& config_;
  const RunFolder& folder_;
  bool first_rank_;
  std::unique_ptr<JobClock> clock_;  // rank 0
  std::string reason_;
};

}  // namespace chexnet
