#include "chexnet/comm/watch/wait_deadline.hpp"

#include <chrono>
#include <utility>

#include "chexnet/comm/watch/hard_exit.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/timeouts.hpp"

namespace chexnet {

WaitDeadline::WaitDeadline(double limit_s, std::function<void()> late)
    : late_(std::move(late)),
      thread_([this, limit_s](const std::stop_token& stop) {
        run(stop, limit_s);
      }) {}

WaitDeadline::~WaitDeadline() = default;

void WaitDeadline::run(const std::stop_token& stop, double limit_s) {
  constexpr auto kLookEvery = std::chrono::milliseconds(100);
  CollectiveDeadline deadline(limit_s, now_s());
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_for(lock, stop, kLookEvery, [] { return false; });
    const uint64_t ends = ends_;
    if (ends != std::exchange(seen, ends))
      deadline = CollectiveDeadline(limit_s, now_s());
    const bool waits = ends % 2 == 1;
    if (!waits || deadline.waited_s(now_s()) <= limit_s) continue;
    if (!stop.stop_requested() && ends_ == ends) late_();
    return;
  }
}

std::unique_ptr<WaitDeadline> hang_deadline(double limit_s,
                                            const std::string& error) {
  return std::make_unique<WaitDeadline>(limit_s, [error] {
    constexpr int kLogTimeout_s = 5;  // the log may hang, too
    constexpr auto kCode = static_cast<int>(ExitCode::kHang);
    exit_within(kLogTimeout_s, kCode);
    log_error(error);
    exit_and_end_launcher(kCode);
  });
}

std::unique_ptr<WaitDeadline> storage_deadline(double limit_s,
                                               const std::string& doing) {
  return hang_deadline(
      limit_s, "[storage] " + doing + " took more than " + fixed(limit_s, 0) +
                   " s on " + host_name() +
                   ". Hint: does the storage answer? Else raise "
                   "launch.timeout_s");
}

StorageWait::StorageWait(double timeout_s, const std::string& doing)
    : deadline_(storage_deadline(timeout_s, doing)), wait_(deadline_.get()) {}

}  // namespace chexnet
