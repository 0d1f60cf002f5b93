// How much of loading overlaps computing.
#pragma once

#include <cstdint>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/json.hpp"

namespace chexnet {

// Sums over the steps of one rank. Evaluations and checkpoints between two
// steps are left out.
struct StepTimes {
  double loading_s = 0, exposed_s = 0;  // of Loader::Stats
  double data_wait_s = 0;               // of the main thread
  double all_s = 0;
  int64_t steps = 0;

  StepTimes since(const StepTimes& before) const;
};

// Seconds per step, the mean of the ranks.
struct Overlap {
  double loading_s = 0;
  double computing_s = 0;  // all of a step but the wait for data
  double step_s = 0;
  // The fraction of loading that nobody waited for, 0 to 1. On a GPU, which the
  // host is a step ahead of, the GPU may have waited for less.
  double hidden = 1;
};

// Collective; all ranks have the same steps, at least one.
Overlap mean_overlap(Communicator& comm, const StepTimes& own);
// "loading 31 ms, computing 118 ms, step 119 ms: 96 % of loading hidden"
std::string overlap_text(const Overlap& overlap);
// Of `train --json` and results.json: docs/json.md.
Json overlap_json(const Overlap& overlap);

}  // namespace chexnet
