// A thread that looks once a second at this host and at one GPU: how busy, how much memory, which
// clock, which errors.
#pragma once

#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "chexnet/machine/nvml.hpp"

namespace chexnet {

// Means over the samples since the last look; -1 = not known.
struct Usage {
  int samples = 0;
  double host_cpu_percent = -1;  // of all cores of the host, everybody's work
  double gpu_percent = -1, gpu_memory_bytes = -1, gpu_power_w = -1, gpu_clock_mhz = -1,
         gpu_temperature_c = -1;
  double gpu_busy_fraction = -1;  // of samples with any utilization over 10 %
  double gpu_full_fraction = -1;  // of samples over 90 %
  double throttled_fraction = -1;
  std::string throttle_reasons;   // of the last throttled sample
  std::vector<std::string> xids;  // new ones
};

class UsageMonitor {
 public:
  // `gpu_uuid` empty: the host alone.
  explicit UsageMonitor(std::string gpu_uuid);
  Usage take();         // since the last take()
  Usage whole() const;  // since the start

 private:
  struct Sums {
    int samples = 0, gpu_samples = 0;
    double host = 0, gpu = 0, memory = 0, power = 0, clock = 0, temperature = 0;
    int busy = 0, full = 0, throttled = 0;
    std::uint64_t reasons = 0;
    std::vector<std::string> xids;
    Usage usage() const;
  };
  void run(const std::stop_token& stop);
  std::string uuid_;
  mutable std::mutex mutex_;  // guards recent_ and whole_
  Sums recent_, whole_;
  std::jthread thread_;
};

// Dell's tips for GPU runs: utilization stays over 90 %, with occasional dips down to 10-25 %, and
// the GPU is busy at least 80 % of the job's time. What was measured, whether that holds, and if
// not, where the time went (shares of the run's time spent waiting). Empty without a GPU.
std::string utilization_summary(const Usage& whole, double data_wait_fraction,
                                double allreduce_wait_fraction);

}  // namespace chexnet
