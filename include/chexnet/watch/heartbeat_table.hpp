// What every rank of a host is doing, in memory they share: one slot each, written by its owner,
// read by all. It has no name once all have opened it, so nothing stays behind a crash.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/profiler.hpp"
#include "chexnet/watch/failure_detector.hpp"

namespace chexnet {

class HeartbeatTable {
 public:
  struct Slot {
    PhaseSlot phase;
    std::atomic<double> heartbeat_s{0};  // steady clock, of its watchdog thread
    std::atomic<int> pid{0};
    std::atomic<int> rank{0};
  };
  // Collective. DeviceError when there is no shared memory.
  explicit HeartbeatTable(Communicator& comm);
  ~HeartbeatTable();
  HeartbeatTable(const HeartbeatTable&) = delete;
  HeartbeatTable& operator=(const HeartbeatTable&) = delete;

  int size() const { return count_; }
  Slot& own() const { return slots_[own_]; }
  // A rank of this host as it shows itself now; without host and GPU.
  RankView view(int local_rank);
  // Not 0 once this host's ranks must end, with this exit code.
  std::atomic<int>& end_code() const { return *end_code_; }

 private:
  int count_, own_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
  std::atomic<int>* end_code_ = nullptr;
  Slot* slots_ = nullptr;
  std::vector<char> seen_;  // [local rank], its process once existed
};

}  // namespace chexnet
