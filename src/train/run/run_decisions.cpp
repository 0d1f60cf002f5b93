#include "chexnet/train/run/run_decisions.hpp"

#include <cassert>

#include "chexnet/core/error.hpp"

namespace chexnet {

// What the run's own config.yaml says: a resume, or somebody who repeats the
// run elsewhere, gets the batch that was chosen and not another one.
Config with_decisions(Config config, const RunDecisions& decisions) {
  assert(decisions.batch > 0);
  config.train.batch = decisions.batch;
  return config;
}

void check_batch(const TrainConfig& config, int64_t batch, int ranks) {
  assert(batch > 0 && ranks > 0);
  const int64_t pieces = static_cast<int64_t>(ranks) * config.accumulate;
  if (batch % pieces == 0) return;
  const int64_t next = (batch / pieces + 1) * pieces;
  throw ConfigError(
      "[train] train.batch = {} cannot be shared by {} ranks x {} "
      "micro-batches. Hint: train.batch={}, another multiple of {}, or fewer "
      "ranks",
      batch, ranks, config.accumulate, next, pieces);
}

}  // namespace chexnet
