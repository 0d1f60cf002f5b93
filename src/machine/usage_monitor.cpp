#include "chexnet/machine/usage_monitor.hpp"

#include <algorithm>
#include <condition_variable>
#include <fstream>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

constexpr double kBusyPercent = 10, kFullPercent = 90;
constexpr auto kEvery = std::chrono::seconds(1);

struct CpuTicks {
  double busy = 0, all = 0;
};
// The first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks.
CpuTicks host_ticks() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  CpuTicks ticks;
  double value = 0;
  for (int i = 0; i < 8 && file >> value; ++i) {
    ticks.all += value;
    if (i != 3 && i != 4) ticks.busy += value;
  }
  return ticks;
}

}  // namespace

Usage UsageMonitor::Sums::usage() const {
  Usage usage;
  usage.samples = samples;
  usage.xids = xids;
  if (samples > 0) usage.host_cpu_percent = host / samples;
  if (gpu_samples == 0) return usage;
  const double n = gpu_samples;
  usage.gpu_percent = gpu / n;
  usage.gpu_memory_bytes = memory / n;
  usage.gpu_power_w = power / n;
  usage.gpu_clock_mhz = clock / n;
  usage.gpu_temperature_c = temperature / n;
  usage.gpu_busy_fraction = busy / n;
  usage.gpu_full_fraction = full / n;
  usage.throttled_fraction = throttled / n;
  usage.throttle_reasons = throttle_text(reasons);
  return usage;
}

UsageMonitor::UsageMonitor(std::string gpu_uuid) : uuid_(std::move(gpu_uuid)) {
  thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
}

void UsageMonitor::run(const std::stop_token& stop) {
  const auto nvml = uuid_.empty() ? nullptr : Nvml::open();
  CpuTicks before = host_ticks();
  std::mutex sleep;
  std::condition_variable_any waker;
  for (;;) {
    std::unique_lock lock(sleep);
    waker.wait_for(lock, stop, kEvery, [] { return false; });
    if (stop.stop_requested()) return;
    const CpuTicks now = host_ticks();
    const double host =
        now.all > before.all ? 100 * (now.busy - before.busy) / (now.all - before.all) : 0;
    before = now;
    const auto gpus = nvml ? nvml->gpus() : std::vector<GpuState>{};
    const auto xids = nvml ? nvml->new_xids() : std::vector<std::string>{};
    const std::lock_guard guard(mutex_);
    for (Sums* sums : {&recent_, &whole_}) {
      ++sums->samples;
      sums->host += host;
      sums->xids.insert(sums->xids.end(), xids.begin(), xids.end());
      for (const auto& gpu : gpus) {
        const bool mine =
            gpu.uuid == uuid_ || std::ranges::find(gpu.mig_uuids, uuid_) != gpu.mig_uuids.end();
        if (!mine) continue;
        ++sums->gpu_samples;
        sums->gpu += std::max(0.0, gpu.utilization_percent);
        sums->memory += gpu.memory_used_bytes;
        sums->power += gpu.power_w;
        sums->clock += gpu.sm_clock_mhz;
        sums->temperature += gpu.temperature_c;
        sums->busy += gpu.utilization_percent > kBusyPercent ? 1 : 0;
        sums->full += gpu.utilization_percent > kFullPercent ? 1 : 0;
        if (throttle_text(gpu.throttle_reasons).empty()) continue;
        ++sums->throttled;
        sums->reasons = gpu.throttle_reasons;
      }
    }
  }
}

Usage UsageMonitor::take() {
  const std::lock_guard guard(mutex_);
  const Usage usage = recent_.usage();
  recent_ = {};
  return usage;
}

Usage UsageMonitor::whole() const {
  const std::lock_guard guard(mutex_);
  return whole_.usage();
}

std::string utilization_summary(const Usage& whole, double data_wait_fraction,
                                double allreduce_wait_fraction) {
  if (whole.gpu_percent < 0) return "";
  constexpr double kBusyRule = 0.8, kMeanRule = 90;
  const bool holds = whole.gpu_busy_fraction >= kBusyRule && whole.gpu_percent >= kMeanRule;
  std::string text = "GPU utilization " + fixed(whole.gpu_percent, 0) + " % in the mean, busy " +
                     fixed(100 * whole.gpu_busy_fraction, 0) + " % of the time, over 90 % in " +
                     fixed(100 * whole.gpu_full_fraction, 0) +
                     " % of the samples: the rule (over " +
                     "90 %, busy at least 80 % of the job) " + (holds ? "holds" : "does not hold");
  if (holds) return text;
  if (data_wait_fraction > 0.05 && data_wait_fraction >= allreduce_wait_fraction)
    text += "; " + fixed(100 * data_wait_fraction, 0) +
            " % of the time went into waiting for data: see `diagnose`";
  else if (allreduce_wait_fraction > 0.05)
    text += "; " + fixed(100 * allreduce_wait_fraction, 0) +
            " % of the time went into waiting for gradients: see `doctor` and the straggler table";
  else
    text +=
        "; neither data nor gradients were waited for: the steps are too small for this GPU "
        "(a larger train.batch), or start-up and evaluation took the time";
  return text;
}

}  // namespace chexnet
