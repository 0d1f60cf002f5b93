// Of many threads that meet an outage one says so: the one whose
// compare_exchange moves `told_s_` on. worked() is called for every read, so it
// looks before it writes.
#include "outage_log.hpp"

#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {

void pause(double seconds, const std::stop_token& stop) {
  assert(seconds >= 0);
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::duration<double>(seconds),
                 [] { return false; });
}

void OutageLog::failed(double since_s, const std::string& what) {
  const double now = now_s();
  double told = told_s_.load();
  const bool due =
      told == 0 ? now - since_s >= quiet_s_ : now - told >= again_s_;
  if (!due || !told_s_.compare_exchange_strong(told, now)) return;
  log_warning("[" + origin_ + "] reads have failed for " +
              readable_s(now - since_s) + ": " + what);
}

void OutageLog::worked() {
  if (told_s_.load(std::memory_order_relaxed) == 0) return;
  if (told_s_.exchange(0) != 0)
    log_info("[" + origin_ + "] the storage answers again");
}

}  // namespace chexnet
