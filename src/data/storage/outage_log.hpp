// Waiting for storage that does not answer: pauses that end when the bytes are
// no longer needed, and one voice in the log for an outage that many threads
// meet at once.
#pragma once

#include <atomic>
#include <stop_token>
#include <string>

namespace chexnet {

// Returns early when a stop is requested.
void pause(double seconds, const std::stop_token& stop);

// Any number of threads.
class OutageLog {
 public:
  // The first line comes `quiet_s` after the first failure, the next ones
  // `again_s` apart.
  OutageLog(std::string origin, double quiet_s, double again_s)
      : origin_(std::move(origin)), quiet_s_(quiet_s), again_s_(again_s) {}

  // A read fails, and has failed since `since_s` (of now_s()).
  void failed(double since_s, const std::string& what);
  // A read worked; says so when an outage was told of.
  void worked();

 private:
  const std::string origin_;
  const double quiet_s_, again_s_;
  std::atomic<double> told_s_ = 0;  // 0: nothing to take back
};

}  // namespace chexnet
