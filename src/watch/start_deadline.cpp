#include "chexnet/watch/start_deadline.hpp"

#include <chrono>
#include <utility>

#include "chexnet/comm/timeouts.hpp"
#include "chexnet/core/clock.hpp"

namespace chexnet {

StartDeadline::StartDeadline(double limit_s, std::function<void()> late)
    : late_(std::move(late)),
      thread_([this, limit_s](const std::stop_token& stop) {
        run(stop, limit_s);
      }) {}

StartDeadline::~StartDeadline() = default;

void StartDeadline::run(const std::stop_token& stop, double limit_s) {
  constexpr auto kLookEvery = std::chrono::milliseconds(100);
  CollectiveDeadline deadline(limit_s, now_s());
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_for(lock, stop, kLookEvery, [] { return false; });
    if (deadline.waited_s(now_s()) <= limit_s) continue;
    if (!stop.stop_requested()) late_();
    return;
  }
}

}  // namespace chexnet
