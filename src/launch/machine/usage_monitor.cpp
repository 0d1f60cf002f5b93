// Only sums are kept (and the rare Xids), one set since the last take() and one
// of the whole run, so memory does not grow with the job. A sample is taken
// outside of the lock: a slow driver holds up the sampling thread and nobody
// else.
#include "chexnet/launch/machine/usage_monitor.hpp"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <utility>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

constexpr double kBusyPercent = 10, kFullPercent = 90;
constexpr auto kEvery = std::chrono::seconds(1);

}  // namespace

CpuTicks read_cpu_ticks(std::istream& proc_stat) {
  // "cpu" user nice system idle iowait irq softirq steal. The ninth, guest, is
  // in user already.
  constexpr int kColumns = 8, kIdle = 3, kIoWait = 4;
  std::string word;
  proc_stat >> word;
  CpuTicks ticks;
  double value = 0;
  for (int i = 0; i < kColumns && proc_stat >> value; ++i) {
    ticks.all += value;
    if (i != kIdle && i != kIoWait) ticks.busy += value;
  }
  return ticks;
}

double busy_percent(const CpuTicks& before, const CpuTicks& now) {
  if (now.all <= before.all) return 0;
  return 100 * (now.busy - before.busy) / (now.all - before.all);
}

std::function<UsageSample()> sampler_of_host(const std::string& gpu_uuid) {
  struct State {
    std::unique_ptr<Nvml> nvml;
    CpuTicks ticks;
  };
  const auto ticks_now = [] {
    std::ifstream file("/proc/stat");
    return read_cpu_ticks(file);
  };
  const auto state = std::make_shared<State>();
  state->ticks = ticks_now();
  bool opened = false;
  return [state, ticks_now, gpu_uuid, opened]() mutable {
    // By the thread that uses it: opening the driver takes a while.
    if (!gpu_uuid.empty() && !std::exchange(opened, true)) {
      state->nvml = Nvml::open();
      if (state->nvml && !state->nvml->watch(gpu_uuid)) state->nvml.reset();
    }
    UsageSample sample;
    const CpuTicks now = ticks_now();
    sample.host_cpu_percent =
        busy_percent(std::exchange(state->ticks, now), now);
    if (state->nvml == nullptr) return sample;
    sample.gpu = state->nvml->watched();
    sample.xids = state->nvml->new_xids();
    return sample;
  };
}

void UsageSums::Mean::add(double value) {
  if (value < 0) return;
  sum_ += value;
  ++count_;
}

double UsageSums::Mean::value() const {
  return count_ > 0 ? sum_ / count_ : -1;
}

void UsageSums::add(const UsageSample& sample) {
  ++samples_;
  host_.add(sample.host_cpu_percent);
  xids_.insert(xids_.end(), sample.xids.begin(), sample.xids.end());
  if (sample.gpu) add_gpu(*sample.gpu, sample.cause);
}

void UsageSums::add_gpu(const GpuState& gpu, IdleCause cause) {
  gpu_.add(gpu.utilization_percent);
  memory_.add(gpu.memory_used_bytes);
  power_.add(gpu.power_w);
  clock_.add(gpu.sm_clock_mhz);
  temperature_.add(gpu.temperature_c);
  if (gpu.utilization_percent >= 0) {
    busy_.add(gpu.utilization_percent > kBusyPercent ? 1 : 0);
    full_.add(gpu.utilization_percent > kFullPercent ? 1 : 0);
    idle_[static_cast<size_t>(cause)] += 100 - gpu.utilization_percent;
    ++loads_;
  }
  most_memory_ = std::max(most_memory_, gpu.memory_used_bytes);
  if (first_energy_ < 0) first_energy_ = gpu.energy_j;
  last_energy_ = std::max(last_energy_, gpu.energy_j);
  const bool throttled = !throttle_text(gpu.throttle_reasons).empty();
  throttled_.add(throttled ? 1 : 0);
  if (throttled) reasons_ = gpu.throttle_reasons;
}

Usage UsageSums::usage() const {
  Usage usage;
  usage.samples = samples_;
  usage.xids = xids_;
  usage.host_cpu_percent = host_.value();
  usage.gpu_percent = gpu_.value();
  usage.gpu_memory_bytes = memory_.value();
  usage.gpu_power_w = power_.value();
  usage.gpu_clock_mhz = clock_.value();
  usage.gpu_temperature_c = temperature_.value();
  usage.gpu_most_memory_bytes = most_memory_;
  if (last_energy_ > first_energy_ && first_energy_ >= 0)
    usage.gpu_energy_j = last_energy_ - first_energy_;
  for (size_t i = 0; loads_ > 0 && i < idle_.size(); ++i)
    usage.gpu_idle[i] = idle_[i] / loads_;
  usage.gpu_busy_fraction = busy_.value();
  usage.gpu_full_fraction = full_.value();
  usage.throttled_fraction = throttled_.value();
  usage.throttle_reasons = throttle_text(reasons_);
  return usage;
}

UsageMonitor::UsageMonitor(const std::string& gpu_uuid,
                           const std::function<IdleCause()>& cause)
    : UsageMonitor(
          [look = sampler_of_host(gpu_uuid), cause] {
            UsageSample sample = look();
            sample.cause = cause();
            return sample;
          },
          kEvery) {}

UsageMonitor::UsageMonitor(Sampler sampler, std::chrono::milliseconds every)
    : sampler_(std::move(sampler)) {
  assert(sampler_ && every.count() > 0);
  thread_ = std::jthread(
      [this, every](const std::stop_token& stop) { run(stop, every); });
}

void UsageMonitor::run(const std::stop_token& stop,
                       std::chrono::milliseconds every) {
  std::mutex sleep;
  std::condition_variable_any waker;
  for (;;) {
    std::unique_lock lock(sleep);
    waker.wait_for(lock, stop, every, [] { return false; });
    if (stop.stop_requested()) return;
    const UsageSample sample = sampler_();
    const std::lock_guard guard(mutex_);
    recent_.add(sample);
    whole_.add(sample);
  }
}

Usage UsageMonitor::take() {
  const std::lock_guard guard(mutex_);
  Usage usage = recent_.usage();
  recent_ = {};
  return usage;
}

Usage UsageMonitor::whole() const {
  const std::lock_guard guard(mutex_);
  return whole_.usage();
}

}  // namespace chexnet
