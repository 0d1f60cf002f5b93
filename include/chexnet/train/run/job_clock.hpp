// How long this job may still run. TERM at the end of a batch job's time never
// reaches ranks on other hosts, so the program stops itself before.
#pragma once

#include <atomic>
#include <optional>
#include <stop_token>
#include <thread>

#include "chexnet/config/config.hpp"
#include "chexnet/launch/batch_system.hpp"

namespace chexnet {

class JobClock {
 public:
  // launch.time_limit, counted from the program's start; else asks the batch
  // system now and every few minutes, on a separate thread, because its
  // commands may hang. ConfigError for a limit that cannot be read.
  explicit JobClock(const LaunchConfig& config);
  // The limit of the config, seconds; throws as the constructor does.
  static std::optional<double> configured_s(const LaunchConfig& config);
  // Seconds left; nothing without a limit.
  std::optional<double> left_s() const;

 private:
  void ask(const std::stop_token& stop, const BatchJob& job);
  std::atomic<double> end_s_;  // steady clock; infinite without a limit
  std::jthread thread_;
};

}  // namespace chexnet
