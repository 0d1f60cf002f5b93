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

TEST_CASE(
    "idle time goes to what the rank was in, and energy is a difference") {
  UsageSums sums;
  const auto look = [&](double percent, IdleCause cause, double energy_j) {
    UsageSample sample;
    sample.gpu = gpu_at(percent);
    sample.gpu->energy_j = energy_j;
    sample.gpu->memory_used_bytes = percent * 1e7;
    sample.cause = cause;
    sums.add(sample);
  };
  look(100, IdleCause::kHost, 5000);
  CHECK(sums.usage().gpu_energy_j == -1);  // of one look nothing is known
  look(20, IdleCause::kInput, 5200);
  look(60, IdleCause::kCheckpoint, 5450);
  look(-1, IdleCause::kHost, 5600);  // an unknown load is no idle time
  const Usage usage = sums.usage();
  CHECK(usage.gpu_idle[size_t(IdleCause::kInput)] == Approx(80 / 3.0));
  CHECK(usage.gpu_idle[size_t(IdleCause::kCheckpoint)] == Approx(40 / 3.0));
  CHECK(usage.gpu_idle[size_t(IdleCause::kHost)] == 0);
  CHECK(usage.gpu_energy_j == 600);
  CHECK(usage.gpu_most_memory_bytes == 1e9);
}

TEST_CASE("a figure that the driver does not give is not known") {
  UsageSums sums;
  UsageSample sample;
  sample.gpu = GpuState{};
  sums.add(sample);
  CHECK(sums.usage().gpu_percent == -1);
  CHECK(sums.usage().gpu_power_w == -1);
  CHECK(sums.usage().gpu_busy_fraction == -1);
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
