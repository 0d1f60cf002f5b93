// Why a run fails, and through which ranks: decided from what every rank last
// said of itself. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/core/profiler.hpp"

namespace chexnet {

// One rank as an observer sees it. Ages in seconds.
struct RankView {
  int rank = 0;
  std::string host, gpu;
  int pid = 0;
  bool ended = false;  // it said that it has ended
  bool gone = false;   // its process does not exist
  // It is silent, and a signal or a debugger has stopped its process.
  bool stopped = false;
  double heartbeat_age_s = 0;  // since its watchdog thread last woke
  double host_silent_s = 0;    // since its host was last heard
  Phase phase = Phase::kOther;
  double phase_age_s = 0;  // since it last moved (PhaseSlot)
  uint64_t sequence = 0;   // of the last collective it entered
  int64_t step = 0;        // that it works on
};

enum class FailureCause { kDied, kCutOff, kStopped, kStuck, kGpu, kNetwork };
const char* cause_name(FailureCause cause);  // "died", "cut off", …

struct Failure {
  FailureCause cause;
  std::vector<int> ranks;  // that it fails through; all for kNetwork
  int exit_code() const;  // 5 for a death or a lost host, 7 for what only hangs
};

struct WatchTimeouts {
  // Longest wait of a rank for others, and longest time in which no rank moves.
  double still_s = 600;
  double silence_s = 60;  // longest silence of a rank or a host
};

// In this order: processes that are gone; a host that is silent; ranks whose
// threads do not run, with all that are stopped. Where a collective takes too
// long, or no rank moves: a host that was not heard for 2 s; ranks that are
// stopped; ranks that are in no collective, and of these those whose GPU does
// not finish; the network, where all ranks wait in one collective, or for
// gradients of one step.
std::optional<Failure> detect_failure(const std::vector<RankView>& ranks,
                                      const WatchTimeouts& timeouts);

// "Rank 3 on node2 (Tesla V100) stopped answering 5.1 s ago during backward of
// step 812".
std::string failure_text(const Failure& failure,
                         const std::vector<RankView>& ranks);

}  // namespace chexnet
