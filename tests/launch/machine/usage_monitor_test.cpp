#include "chexnet/launch/machine/usage_monitor.hpp"

#include <atomic>
#include <sstream>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

GpuState gpu_at(double utilization) {
  GpuState gpu;
  gpu.utilization_percent = utilization;
  gpu.memory_used_bytes = 4e9;
  gpu.power_w = 200;
  gpu.sm_clock_mhz = 1400;
  gpu.temperature_c = 60;
  return gpu;
}

CpuTicks ticks_of(const std::string& text) {
  std::istringstream stream(text);
  return read_cpu_ticks(stream);
}

}  // namespace

TEST_CASE(
    "the host's load is what was neither idle nor waiting for disks between "
    "two looks") {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const CpuTicks first =
      ticks_of("cpu  100 10 50 800 40 1 2 3 70 7\ncpu0 1 1 1 1\n");
  CHECK(first.busy == 166);
  CHECK(first.all == 1006);
  const CpuTicks then = ticks_of("cpu  125 10 50 850 65 1 2 3 90 9\n");
  CHECK(busy_percent(first, then) == Approx(25));
  CHECK(busy_percent(then, then) == 0);
  CHECK(busy_percent(then, first) == 0);
  CHECK(ticks_of("").all == 0);
  CHECK(ticks_of("cpu 1 2 x").all == 3);
}

TEST_CASE("sums give means, and nothing where nothing is known") {
  UsageSums sums;
  CHECK(sums.usage().samples == 0);
  CHECK(sums.usage().host_cpu_percent == -1);

  UsageSample sample;
  sample.host_cpu_percent = 40;
  sums.add(sample);
  sample.host_cpu_percent = 60;
  sums.add(sample);  // a rank without a GPU
  CHECK(sums.usage().host_cpu_percent == 50);
  CHECK(sums.usage().gpu_percent == -1);
  CHECK(sums.usage().gpu_busy_fraction == -1);
}

TEST_CASE("busy, full and throttled are fractions of the samples") {
  UsageSums sums;
  for (const double percent : {-1.0, 5.0, 11.0, 91.0}) {
    UsageSample sample;
    sample.gpu = gpu_at(percent);
    if (percent > 90) sample.gpu->throttle_reasons = 0x40;
    if (percent < 0) sample.gpu->throttle_reasons = 1;  // idle is no trouble
    if (percent > 10) sample.xids = {"GPU-a Xid 79"};
    sums.add(sample);
  }
  const Usage usage = sums.usage();
  CHECK(usage.samples == 4);
  // An unknown one is left out.
  CHECK(usage.gpu_percent == Approx((5 + 11 + 91) / 3.0));
  CHECK(usage.gpu_busy_fraction == Approx(2 / 3.0));
  CHECK(usage.gpu_full_fraction == Approx(1 / 3.0));
  CHECK(usage.throttled_fraction == 0.25);
  CHECK(usage.throttle_reasons == "hardware thermal");
  CHECK(usage.gpu_memory_bytes == 4e9);
  CHECK(usage.gpu_power_w == 200);
  CHECK(usage.xids.size() == 2);
}

TEST_CASE("a figure that the driver does not give is not known") {
  UsageSums sums;
  UsageSample sample;
  sample.gpu = GpuState{};
  sums.add(sample);
  CHECK(sums.usage().gpu_percent == -1);
  CHECK(sums.usage().gpu_power_w == -1);
  CHECK(sums.usage().gpu_busy_fraction == -1);
  CHECK(utilization_summary(sums.usage(), 0, 0).empty());
  sample.gpu->power_w = 300;
  sums.add(sample);
  CHECK(sums.usage().gpu_power_w == 300);
}

TEST_CASE("the monitor gives each sample once to take(), and all to whole()") {
  std::atomic<int> looks = 0;
  UsageMonitor monitor(
      [&] {
        UsageSample sample;
        sample.host_cpu_percent = ++looks;
        return sample;
      },
      std::chrono::milliseconds(1));
  int taken = 0;
  for (int i = 0; i < 5000 && taken < 20; ++i) {
    taken += monitor.take().samples;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(taken >= 20);
  const Usage whole = monitor.whole();
  CHECK(whole.samples >= taken);
  CHECK(whole.samples <= looks);
  CHECK(whole.host_cpu_percent == Approx((whole.samples + 1) / 2.0));
}

TEST_CASE("what a run is told of its GPU") {
  Usage usage;
  CHECK(utilization_summary(usage, 0, 0).empty());
  usage.gpu_percent = 95;
  usage.gpu_busy_fraction = 0.99;
  usage.gpu_full_fraction = 0.9;
  CHECK(utilization_summary(usage, 0.5, 0).ends_with("holds"));
  usage.gpu_percent = 50;
  const auto says = [&](double data, double all_reduce,
                        const std::string& words) {
    return utilization_summary(usage, data, all_reduce).find(words) !=
           std::string::npos;
  };
  CHECK(says(0, 0, "does not hold"));
  CHECK(says(0.3, 0.1, "30 % of the time of steps went into waiting for data"));
  CHECK(says(0.1, 0.3,
             "30 % of the time of steps went into waiting for gradients"));
  CHECK(says(0.01, 0.01, "too small for this GPU"));
}
