// Names the rank that hangs, dies or is cut off, and ends the run in time,
// whatever MPI does.
//
// A thread in every rank shows, through memory its host's ranks share, that the
// process runs and what it does. The first running rank of each host reports
// its host by TCP to two observers: rank 0, and a rank of another host (else
// rank 1), so that rank 0 can be named too. An observer that finds a failure
// (failure_detector.hpp) writes postmortem.json, prints one sentence and has
// every rank it reaches end; a host that no observer answers ends itself. Ranks
// end by _exit, because the main thread may be inside MPI; a launcher that then
// hangs (mpirun does when a link is cut) is killed.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/profiler.hpp"

namespace chexnet {

class Watchdog {
 public:
  struct Options {
    double timeout_s = 600;  // launch.timeout_s
    std::filesystem::path run_folder;
    std::string resume_command;
    std::string gpu;  // of this rank
    // The last act of this rank, within five seconds, before the watchdog ends
    // it: on the watchdog's thread, so without waiting for the main thread. May
    // throw. `now`: the main thread's phase.
    std::function<void(const PhaseSlot& now)> last_act;
  };
  // Collective. `profiler` must outlive it.
  Watchdog(Communicator& comm, Profiler& profiler, const Options& options);
  // Says that this rank ended in order (also while an exception passes: its
  // message explains).
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  class Thread;
  Profiler& profiler_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace chexnet
