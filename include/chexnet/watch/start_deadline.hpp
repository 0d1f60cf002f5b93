// How long MPI's start may take. MPI_Init waits without end for a host that it
// cannot reach, and no watchdog runs yet.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace chexnet {

class StartDeadline {
 public:
  // Ranks of a busy machine come to MPI's start seconds apart.
  static constexpr double kLeast_s = 30;

  // Calls `late` once, in a thread of its own, when the object lives for
  // longer than `limit_s`. A suspension of the job does not count.
  StartDeadline(double limit_s, std::function<void()> late);
  // Waits for the end of `late`.
  ~StartDeadline();
  StartDeadline(const StartDeadline&) = delete;
  StartDeadline& operator=(const StartDeadline&) = delete;

 private:
  void run(const std::stop_token& stop, double limit_s);

  std::function<void()> late_;
  std::mutex mutex_;  // of nothing: the condition wants one
  std::condition_variable_any stopped_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace chexnet
