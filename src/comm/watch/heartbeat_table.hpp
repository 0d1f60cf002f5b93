// What every rank of a host is doing, in memory they share: one slot each,
// which its rank fills and all read. The memory has no name: it goes away with
// the last process, however that ends, and no later run can find it. Only where
// ranks do not see each other's processes (each in its container) it has one
// until all have opened it, and a kill in that moment leaves it.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/profiler.hpp"
#include "host_ranks.hpp"

namespace chexnet {

class HeartbeatTable final : public HostRanks {
 public:
  struct Slot {
    PhaseSlot phase;
    std::atomic<double> heartbeat_s{0};  // steady clock, of its watchdog thread
    std::atomic<int> pid{0};
    std::atomic<int> rank{0};
  };
  // Collective. DeviceError when there is no shared memory.
  explicit HeartbeatTable(Communicator& comm);
  ~HeartbeatTable() override;
  HeartbeatTable(const HeartbeatTable&) = delete;
  HeartbeatTable& operator=(const HeartbeatTable&) = delete;

  int size() const override { return count_; }
  Slot& own() const { return slots_[own_]; }
  RankView view(int local_rank) override;
  void set_heartbeat(double now_s) override { own().heartbeat_s = now_s; }
  int end_code() const override { return *end_code_; }
  void set_end_code(int code) override { *end_code_ = code; }

 private:
  void construct();  // in fresh memory
  // Collective. Null, and an errno, where that does not work for this rank.
  std::byte* share_nameless(Communicator& comm, int& error);
  std::byte* share_named(Communicator& comm, int& error);

  int count_, own_;
  size_t bytes_;
  std::byte* memory_ = nullptr;
  std::atomic<int>* end_code_ = nullptr;
  Slot* slots_ = nullptr;
  std::vector<char> seen_;  // [local rank], its process once existed
};

}  // namespace chexnet
