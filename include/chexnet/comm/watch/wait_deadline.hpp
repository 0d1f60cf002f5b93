// How long a wait may take that has no deadline of its own: for MPI's start,
// which waits without end for a host that it cannot reach, and for what a GPU
// is to do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace chexnet {

class WaitDeadline {
 public:
  // Calls `late` once, in a thread of its own, when one wait takes longer than
  // `limit_s`. A suspension of the job does not count.
  WaitDeadline(double limit_s, std::function<void()> late);
  // Waits for the end of `late`.
  ~WaitDeadline();
  WaitDeadline(const WaitDeadline&) = delete;
  WaitDeadline& operator=(const WaitDeadline&) = delete;

  // Between its begin and its end the owner waits. One at a time.
  class Wait {
   public:
    // Null: nobody looks.
    explicit Wait(WaitDeadline* deadline) : deadline_(deadline) { count(); }
    ~Wait() { count(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    void count() const {
      if (deadline_ != nullptr) ++deadline_->ends_;
    }
    WaitDeadline* deadline_;
  };
  [[nodiscard]] Wait wait() { return Wait(this); }

 private:
  void run(const std::stop_token& stop, double limit_s);

  std::function<void()> late_;
  std::atomic<uint64_t> ends_{0};  // begins and ends; odd within a wait
  std::mutex mutex_;               // of nothing: the condition wants one
  std::condition_variable_any stopped_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace chexnet
