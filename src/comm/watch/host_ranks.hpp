// The ranks of one host, as the watchdog of one of them sees and steers them.
// Shared memory in a run (heartbeat_table.hpp), plain values in tests.
#pragma once

#include "chexnet/comm/watch/failure_detector.hpp"

namespace chexnet {

class HostRanks {
 public:
  virtual ~HostRanks() = default;
  virtual int size() const = 0;
  // A rank as it shows itself now; without host and GPU. `local_rank` < size().
  virtual RankView view(int local_rank) = 0;
  // Of this rank, on the steady clock.
  virtual void set_heartbeat(double now_s) = 0;
  // Not 0 once all ranks of this host must end, with this exit code.
  virtual int end_code() const = 0;
  virtual void set_end_code(int code) = 0;
};

}  // namespace chexnet
