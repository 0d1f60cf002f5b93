// Two clocks: end_s_ is of the steady clock, which no administrator sets back.
// The age of the program is of the system clock, because it begins in another
// process (the first parent) and only that clock's readings can be handed on,
// as CHEXNET_PARENT.
#include "chexnet/train/run/job_clock.hpp"

#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <mutex>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

constexpr auto kEvery = std::chrono::minutes(5);  // limits may be extended

// Since the first start by hand or batch system: restarts of ranks do not count
// anew.
double program_age_s() {
  const char* parent = std::getenv("CHEXNET_PARENT");
  const double start = parent == nullptr ? 0 : std::atof(parent);
  return start > 0 ? system_time_s() - start : process_age_s();
}

}  // namespace

std::optional<double> JobClock::configured_s(const LaunchConfig& config) {
  if (config.time_limit.empty()) return std::nullopt;
  const auto limit = duration_s(config.time_limit);
  if (!limit)
    throw ConfigError(
        "[config] launch.time_limit: '{}' is no time. Hint: 2:00:00 (hours), "
        "90:00 (minutes) or 1-12:00:00 (days)",
        config.time_limit);
  return limit;
}

JobClock::JobClock(const LaunchConfig& config)
    : end_s_(std::numeric_limits<double>::infinity()) {
  if (const auto limit = configured_s(config)) {
    end_s_ = now_s() + *limit - program_age_s();
    return;
  }
  const BatchJob job = batch_job(process_environment());
  if (job.kind == BatchJob::Kind::kNone) return;
  thread_ = std::jthread(
      [this, job](const std::stop_token& stop) { ask(stop, job); });
}

void JobClock::ask(const std::stop_token& stop, const BatchJob& job) {
  std::mutex mutex;
  std::condition_variable_any waker;
  while (!stop.stop_requested()) {
    if (const auto left = job_seconds_left(job)) end_s_ = now_s() + *left;
    std::unique_lock lock(mutex);
    waker.wait_for(lock, stop, kEvery, [] { return false; });
  }
}

std::optional<double> JobClock::left_s() const {
  const double end = end_s_;
  if (std::isinf(end)) return std::nullopt;
  return end - now_s();
}

}  // namespace chexnet
