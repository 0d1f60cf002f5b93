// Why a run halts, and through which ranks: decided from what every rank last said of itself. Pure.
#pragma once

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
  bool ended = false;        // it said that nothing more is to come
  bool gone = false;         // its process does not exist
  double beat_age_s = 0;     // since its own watchdog thread last ran
  double host_silent_s = 0;  // since its host was last heard
  Phase phase = Phase::kOther;
  double phase_age_s = 0;
  std::uint64_t sequence = 0;  // of the last collective it entered
  std::int64_t step = 0;       // that it works on
};

enum class HaltCause { kDied, kCutOff, kStopped, kStuck, kNetwork };
const char* cause_name(HaltCause cause);  // "died", "cut off", …

struct Halt {
  HaltCause cause;
  std::vector<int> ranks;  // through which it halts; all for kNetwork
  int exit_code() const;   // 5 for a death or a lost host, 7 for what only hangs
};

struct Patience {
  double collective_s = 600;  // a rank may wait for others so long
  double silence_s = 60;      // a rank or a host may be silent so long
};

// In this order: a process that is gone; a host that is silent; a rank whose threads do not run;
// ranks that let the others wait in a collective; a collective all ranks wait in.
std::optional<Halt> halt_of(const std::vector<RankView>& ranks, const Patience& patience);

// "Rank 3 on node2 (Tesla V100) stopped answering 5.1 s ago during backward of step 812".
std::string halt_text(const Halt& halt, const std::vector<RankView>& ranks);

}  // namespace chexnet
