// How long a wait may take that has no other deadline: for MPI's start, which
// waits without end for a host that it cannot reach, for what a GPU is to do,
// and for storage where no watchdog looks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace chexnet {

class WaitDeadline {
 public:
  // Calls `late` once, in a new thread, when one wait takes longer than
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

// A wait that is late ends the process with exit code 7, and says `error`.
std::unique_ptr<WaitDeadline> hang_deadline(double limit_s,
                                            const std::string& error);

// Of waits for storage: "`doing` took more than `limit_s` s on this host".
std::unique_ptr<WaitDeadline> storage_deadline(double limit_s,
                                               const std::string& doing);

// From its construction to its end the thread reads or writes files, and does
// little else, within `timeout_s` (launch.timeout_s) by a storage_deadline().
class StorageWait {
 public:
  StorageWait(double timeout_s, const std::string& doing);

 private:
  std::unique_ptr<WaitDeadline> deadline_;
  WaitDeadline::Wait wait_;
};

}  // namespace chexnet
