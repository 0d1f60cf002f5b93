// What the main thread of this rank is doing, set once and used three times:
// seconds by phase (metrics, stragglers), spans for a timeline, and a slot that
// other threads and processes watch. Only the main thread changes it; a null
// Profiler* costs nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "chexnet/core/recording.hpp"

namespace chexnet {

enum class Phase : uint32_t {
  kOther,
  kDataWait,
  kCopy,
  kForward,
  kBackward,
  kAllReduceWait,  // for gradients
  kControl,  // any other collective: agreements, metrics, shared statistics
  kOptimizer,
  kEvaluate,
  kCheckpoint,
  kSetUp,    // from the data to the first step
  kWeights,  // drawing or reading them
  kResults,  // writing them
  kEnded,    // this rank has ended
};
inline constexpr int kPhases = 14;
const char* phase_name(Phase phase);
// Waiting for other ranks, so not the cause of a failure.
inline bool is_collective(Phase phase) {
  return phase == Phase::kAllReduceWait || phase == Phase::kControl;
}

// The present phase, for observers; may be in shared memory. Times of the
// steady clock, which all processes of a host share.
struct PhaseSlot {
  std::atomic<uint32_t> phase{0};
  std::atomic<uint64_t> sequence{
      0};  // of the last collective this rank entered
  std::atomic<int64_t> step{0};
  // When this rank last moved: to another phase, collective or step.
  std::atomic<double> since_s{0};
};
static_assert(std::atomic<double>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

class Profiler {
 public:
  using Seconds = std::array<double, kPhases>;

  // Marks the phase from construction to destruction. An inner span's time is
  // not counted for the outer one. Observers see the phase that an exception
  // ended until the next one begins: there the rank failed.
  class Span {
   public:
    Span(Profiler* profiler, Phase phase, const char* name = nullptr,
         int32_t number = -1);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Profiler* profiler_;
    int exceptions_;
    Phase before_ = Phase::kOther;
    TimelineEvent event_;
  };

  Profiler();
  // Seconds by phase since the start.
  Seconds seconds() const;
  Phase phase() const { return phase_; }  // for any thread
  void set_slot(PhaseSlot* slot);         // null: none
  void set_step(int64_t step);
  void entered_collective(uint64_t sequence);
  // Moves past seconds to another phase: a device's clock tells afterwards how
  // the host's time was used.
  void rebook(Phase from, Phase to, double seconds);
  void ended() { change(Phase::kEnded, 0); }

  // Where spans go from now on; null: nowhere.
  void record(std::shared_ptr<Recording> recording);
  std::shared_ptr<Recording> recording() const;  // any thread
  // Work beside the main thread.
  void add(const TimelineEvent& event) {
    if (recording_) recording_->add(event);
  }

  // Range markers of a profiler (NVTX); null: none.
  using Push = void (*)(const char* name);
  using Pop = void (*)();
  void set_markers(Push push, Pop pop) {
    push_ = push;
    pop_ = pop;
  }

 private:
  // Ends the present phase's stretch of time. `now` 0 reads the clock.
  enum class Shown { kNow, kLater };  // to observers
  double change(Phase to, double now, Shown shown = Shown::kNow);
  std::atomic<Phase> phase_ = Phase::kOther;
  double since_s_;
  Seconds seconds_{};
  PhaseSlot* slot_ = nullptr;
  // Of recording_, where another thread than the main one looks at it.
  mutable std::mutex mutex_;
  std::shared_ptr<Recording> recording_;
  Push push_ = nullptr;
  Pop pop_ = nullptr;
};

}  // namespace chexnet
