// Long work before training (indexing, matching, staging, packing) that takes
// some ranks longer than others, without any rank being taken for hung
// meanwhile.
//
// A rank's work runs on a separate thread. Meanwhile the main threads of all
// ranks meet twice a second in a small all-reduce ("how many still work?"), so
// no collective waits long, whatever deadline it has. Work reports its
// progress; when it reports none for the deadline it is stuck, and the run ends
// with a HangError that names rank and work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/clock.hpp"

namespace chexnet {

// Through this a rank's work reports. Any thread.
class WorkProgress {
 public:
  // Reports progress. Throws a private type when a stop was requested or the
  // work of another rank has failed; let it pass.
  void advance();

 private:
  friend class SharedWork;
  std::atomic<uint64_t> count_ = 0;
  std::atomic<bool> stop_ = false;
};

struct SharedWorkOptions {
  std::string what;        // for messages: "indexing the images"
  double timeout_s = 600;  // without progress
  // The main thread of each rank calls it while anybody works; none: the work
  // is not stopped.
  std::function<bool()> stop = {};
  std::function<double()> clock = now_s;  // seconds
};

// Called with the error on the main thread, after all ranks were told; ends the
// process. Without one a HangError is thrown: for tests.
using EndOfStuckWork = std::function<void(const std::string& error)>;
// Before the first work.
void set_end_of_stuck_work(EndOfStuckWork end);

// All ranks call; a rank without work passes an empty function. True when all
// work is done; false on all ranks when one rank's `stop` said yes before, and
// all work has ended at its next progress. An exception of one rank's work is
// rethrown there; the others throw an Error of the same exit code and text.
// A stuck thread still refers to what `work` captured, so its rank ends by
// EndOfStuckWork.
bool share_work(Communicator& comm, const SharedWorkOptions& options,
                const std::function<void(WorkProgress&)>& work);

// For work of several stages: its callers throw this, on all ranks alike, where
// share_work returned false. It is no error, so no std::exception.
struct WorkStopped {};

}  // namespace chexnet
