// What the main thread of this rank is doing, said once and used three times: seconds by operation
// (metrics, stragglers), a timeline of spans, and a board that other threads and processes watch.
// Written by the main thread only; a null Recorder* costs nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace chexnet {

enum class Operation : std::uint32_t {
  kOther,
  kDataWait,
  kCopy,
  kForward,
  kBackward,
  kAllReduceWait,  // for gradients
  kControl,        // any other collective: agreements, metrics, shared statistics
  kOptimizer,
  kEvaluate,
  kCheckpoint,
  kEnded,  // nothing more is to come from this rank
};
inline constexpr int kOperations = 11;
const char* operation_name(Operation operation);
// Waiting for other ranks, so not to blame for a halt.
inline bool is_collective(Operation operation) {
  return operation == Operation::kAllReduceWait || operation == Operation::kControl;
}

// The present operation, for observers; may lie in shared memory. Times of the steady clock, which
// all processes of a host share.
struct OperationBoard {
  std::atomic<std::uint32_t> operation{0};
  std::atomic<std::uint64_t> sequence{0};  // of the last collective this rank entered
  std::atomic<std::int64_t> step{0};
  std::atomic<double> since_s{0};
};
static_assert(std::atomic<double>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

struct TimelineEvent {
  const char* name = "";     // of static life
  std::int32_t number = -1;  // of a block or bucket; -1 = none
  std::uint8_t track = 0;    // 0 the main thread, 1 communication
  double begin_s = 0, end_s = 0;
};

class Recorder {
 public:
  using Seconds = std::array<double, kOperations>;

  // Marks the operation from construction to destruction. An inner span's time is not counted for
  // the outer one.
  class Span {
   public:
    Span(Recorder* recorder, Operation operation, const char* name = nullptr,
         std::int32_t number = -1);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Recorder* recorder_;
    Operation before_ = Operation::kOther;
    TimelineEvent event_;
  };

  Recorder();
  // Seconds by operation since the start.
  Seconds seconds() const;
  void set_board(OperationBoard* board);  // null: none
  void set_step(std::int64_t step);
  void entered_collective(std::uint64_t sequence);
  void ended() { change(Operation::kEnded, 0); }

  // Keeps up to `events` spans from now on; later ones are dropped and counted.
  void start_timeline(std::size_t events);
  bool has_timeline() const { return capacity_ > 0; }
  // What ran beside the main thread.
  void add(const TimelineEvent& event);
  const std::vector<TimelineEvent>& timeline() const { return events_; }
  std::size_t dropped() const { return dropped_; }

  // Range markers of a profiler (NVTX); null: none.
  using Push = void (*)(const char* name);
  using Pop = void (*)();
  void set_markers(Push push, Pop pop) {
    push_ = push;
    pop_ = pop;
  }

 private:
  // Ends the present operation's stretch of time. `now` 0 reads the clock.
  double change(Operation to, double now);
  Operation operation_ = Operation::kOther;
  double since_s_;
  Seconds seconds_{};
  OperationBoard* board_ = nullptr;
  std::vector<TimelineEvent> events_;
  std::size_t capacity_ = 0, dropped_ = 0;
  Push push_ = nullptr;
  Pop pop_ = nullptr;
};

}  // namespace chexnet
