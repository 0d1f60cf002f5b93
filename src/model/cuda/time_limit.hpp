// A call that may never come back, for a time.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "chexnet/launch/timeouts.hpp"

namespace chexnet {

// Does `work` on a new thread and returns what it gives or throws. Nothing when
// the deadline of a collective passes: the thread is abandoned, so `work` owns
// all that it uses.
template <class Work>
auto within(double timeout_s, Work work) -> std::optional<decltype(work())> {
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  CollectiveDeadline deadline(timeout_s, now_s());
  using std::chrono::milliseconds;
  while (result.wait_for(milliseconds(50)) != std::future_status::ready)
    if (deadline.is_over(deadline.waited_s(now_s()))) return std::nullopt;
  return result.get();
}

}  // namespace chexnet
