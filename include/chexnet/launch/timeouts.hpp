// When a hanging run is ended, and which time counts.
//
// Two clocks look at every wait. With launch.timeout_s = T, after a collective
// has begun:
//
//   T + 0.3 s  the watchdog (watch/) names the rank the others wait for, and
//              ends the run. A rank or a host that is silent is named after T,
//              at most 60 s: it makes others wait too, and the more exact
//              cause is to be named first
//   + 0.6 s    its second observer, if the first one has not spoken; a rank
//              that waits for images to score, which may have no watchdog
//   + 0.8 s    a rank of which a call of MPI does not return, where there is
//              no watchdog
//   T + 1 s    the communicator of every rank ends its own wait
//              (CollectiveDeadline), for worlds whose watchdog cannot speak any
//              more. It can tell what it waited for, not for whom
//
// Neither counts the time in which the whole job was suspended.
#pragma once

namespace chexnet {

inline constexpr double kWatchdogAfter_s = 0.3;
inline constexpr double kSecondObserverAfter_s = 0.6;
inline constexpr double kImagesAfter_s = 0.6;
inline constexpr double kBlockedCallAfter_s = 0.8;
inline constexpr double kCommunicatorAfter_s = 1;
// Of any start of MPI: ranks of a busy machine reach it seconds apart.
inline constexpr double kLeastStart_s = 30;

// Batch systems suspend a job as a whole and let it go on; then everybody seems
// late. A thread that calls this several times a second notices a pause between
// two calls. One thread.
class SuspensionMeter {
 public:
  static constexpr double kPause_s = 2;

  explicit SuspensionMeter(double now_s) : looked_s_(now_s) {}
  // Seconds since the last call when that was a suspension, else 0.
  double look(double now_s) {
    const double pause = now_s - looked_s_;
    looked_s_ = now_s;
    return pause > kPause_s ? pause : 0;
  }

 private:
  double looked_s_;
};

// How long one collective may take on this rank.
class CollectiveDeadline {
 public:
  CollectiveDeadline(double timeout_s, double now_s)
      : timeout_s_(timeout_s), begin_s_(now_s), suspension_(now_s) {}
  // Seconds waited, without suspensions. Call it several times a second.
  double waited_s(double now_s) {
    begin_s_ += suspension_.look(now_s);
    return now_s - begin_s_;
  }
  bool is_over(double waited_s) const {
    return waited_s > timeout_s_ + kCommunicatorAfter_s;
  }

 private:
  double timeout_s_, begin_s_;
  SuspensionMeter suspension_;
};

}  // namespace chexnet
