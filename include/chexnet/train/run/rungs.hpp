// Runs of a sweep that end early (train.rungs): successive halving as its runs
// come, without a server (the stopping form of ASHA: Li et al., MLSys 2020).
//
// Each run that has trained for a rung's epochs writes its validation score
// into the sweep's folder under the next free number. It goes on if it is then
// among the best third. So whoever reads the same numbers comes to the same
// answers, a run that was killed and goes on too. What came later plays no
// part: it is the price of not waiting for others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace chexnet {

struct RungScore {
  std::string run;   // its folder's name
  double value = 0;  // more is better; not NaN
  // Of what the value is of: others are not compared (TrainState).
  std::string validation_sha256;
  bool operator==(const RungScore&) const = default;
};

struct RungPlace {
  int64_t place = 1, of = 1;  // 1 is the best; of ties the one that came first
  // The best third, rounded up.
  bool goes_on() const { return 3 * (place - 1) < of; }
  // "place 5 of 8, of which 3 go on"
  std::string text() const;
};

// Writes `own` into `sweep` as a score after `epoch` epochs, unless it is there
// as this run's newest, and tells its place. Other processes may do so at the
// same time. CheckpointError: the folder cannot be written, or holds what is no
// score.
RungPlace enter_rung(const std::filesystem::path& sweep, int64_t epoch,
                     const RungScore& own);

}  // namespace chexnet
