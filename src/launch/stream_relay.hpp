// Passes a child's stdout or stderr on to ours: mpirun itself ignores a full
// disk there, and dies of a pipe that nobody reads.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <thread>

#include "repeated_errors.hpp"

namespace chexnet {

class StreamRelay {
 public:
  enum class Lines { kAsTheyAre, kErrorsOnce };
  // To the descriptor `to`. Make it before the child. DeviceError when no pipe
  // can be made.
  explicit StreamRelay(int to, Lines lines = Lines::kAsTheyAre);
  ~StreamRelay();  // gives up what was not passed on
  StreamRelay(const StreamRelay&) = delete;
  StreamRelay& operator=(const StreamRelay&) = delete;

  // What it writes to.
  int for_child() const { return write_; }
  // Once the child has it: begins.
  void start();
  // Still passes on what the child wrote, but nothing of processes that it
  // left.
  void child_is_gone() { child_gone_ = true; }
  bool done() const { return done_; }
  // Something could not be written; the rest is thrown away.
  bool failed() const { return failed_; }
  // It failed because nobody reads it any more.
  bool is_closed() const { return closed_; }

 private:
  void pass_on();
  void write_all(std::span<const char> bytes);
  std::optional<RepeatedErrors> repeated_;  // the thread's
  int to_, read_ = -1, write_ = -1;
  std::atomic<bool> child_gone_ = false, given_up_ = false, done_ = false,
                    failed_ = false, closed_ = false;
  std::thread thread_;
};

}  // namespace chexnet
