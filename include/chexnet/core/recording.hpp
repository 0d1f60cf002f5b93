// Spans of a rank's threads over a stretch of a run, for a timeline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace chexnet {

// Rows of a rank: the main thread, and one for each lane (thread, CUDA stream
// or bucket) of the others.
enum class Track : uint8_t { kMain, kLoader, kReader, kNetwork, kGpu };
// Lanes of kGpu.
inline constexpr int32_t kComputeStream = 0, kCommunicationStream = 1;

struct TimelineEvent {
  const char* name = "";  // of static life
  int32_t number = -1;    // of a block or bucket; -1 = none
  Track track = Track::kMain;
  int32_t lane = 0;
  double begin_s = 0, end_s = 0;  // steady clock
};

// Keeps the first `capacity` spans; later ones are dropped and counted. The
// memory is taken once. Any threads add and read at any time, without a lock: a
// watchdog reads while the main thread hangs.
class Recording {
 public:
  explicit Recording(size_t capacity) : slots_(capacity) {}
  void add(const TimelineEvent& event);
  // In the order of their ends; without those that are being added.
  std::vector<TimelineEvent> events() const;
  size_t dropped() const;

 private:
  struct Slot {
    TimelineEvent event;
    std::atomic<bool> whole{false};
  };
  std::vector<Slot> slots_;
  std::atomic<size_t> added_{0};
};

}  // namespace chexnet
