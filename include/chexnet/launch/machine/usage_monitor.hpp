// A thread that samples this host and one GPU once a second: load, memory,
// clock, errors.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <istream>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "chexnet/core/idle_cause.hpp"
#include "chexnet/launch/machine/nvml.hpp"

namespace chexnet {

// Means over the samples since the last take(), of each figure over those that
// have it; -1 = none has.
struct Usage {
  int samples = 0;
  double host_cpu_percent = -1;  // of all cores of the host, everybody's work
  double gpu_percent = -1, gpu_memory_bytes = -1, gpu_power_w = -1,
         gpu_clock_mhz = -1, gpu_temperature_c = -1;
  double gpu_most_memory_bytes = -1;  // of any sample
  double gpu_energy_j = -1;           // taken between first and last sample
  double gpu_busy_fraction = -1;      // of samples with a utilization over 10 %
  double gpu_full_fraction = -1;      // of samples over 90 %
  double throttled_fraction = -1;     // of samples with a GPU
  std::string throttle_reasons;       // of the last throttled sample
  // Percent: 100 less gpu_percent, by what the rank was in at each sample.
  std::array<double, kIdleCauses> gpu_idle{};
  std::vector<std::string> xids;  // new ones
};

// One sample of the host and of a rank's GPU.
struct UsageSample {
  double host_cpu_percent = 0;
  std::optional<GpuState> gpu;    // its load; nothing: no GPU, or no driver
  std::vector<std::string> xids;  // new ones
  IdleCause cause = IdleCause::kHost;
};

// Sums of samples, and the means they give.
class UsageSums {
 public:
  void add(const UsageSample& sample);
  Usage usage() const;

 private:
  class Mean {
   public:
    void add(double value);  // below 0: not known, left out
    double value() const;    // -1 without any
   private:
    double sum_ = 0;
    int count_ = 0;
  };
  void add_gpu(const GpuState& gpu, IdleCause cause);
  int samples_ = 0;
  Mean host_, gpu_, memory_, power_, clock_, temperature_;
  Mean busy_, full_, throttled_;  // of 0 and 1
  double most_memory_ = -1, first_energy_ = -1, last_energy_ = -1;
  std::array<double, kIdleCauses> idle_{};  // sums of percents
  int loads_ = 0;                           // samples with a utilization
  uint64_t reasons_ = 0;
  std::vector<std::string> xids_;
};

// Ticks of all cores since the host started: the first line of /proc/stat.
struct CpuTicks {
  double busy = 0, all = 0;
};
CpuTicks read_cpu_ticks(std::istream& proc_stat);
// Of all cores between two samples; 0 when no tick has passed.
double busy_percent(const CpuTicks& before, const CpuTicks& now);

// The first line of /proc/stat, and NVML where `gpu_uuid` names a GPU.
std::function<UsageSample()> sampler_of_host(const std::string& gpu_uuid);

class UsageMonitor {
 public:
  using Sampler = std::function<UsageSample()>;  // called by the thread alone
  // Of a GPU, or of the one that holds the MIG device with this id; empty: the
  // host alone. The thread asks cause() at each sample.
  UsageMonitor(const std::string& gpu_uuid,
               const std::function<IdleCause()>& cause);
  // Samples by `sampler`, with pauses of `every`.
  UsageMonitor(Sampler sampler, std::chrono::milliseconds every);
  Usage take();         // since the last take()
  Usage whole() const;  // since the start

 private:
  void run(const std::stop_token& stop, std::chrono::milliseconds every);
  Sampler sampler_;
  mutable std::mutex mutex_;  // guards recent_ and whole_
  UsageSums recent_, whole_;
  std::jthread thread_;
};

}  // namespace chexnet
