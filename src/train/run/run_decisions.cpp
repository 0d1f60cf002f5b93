#include "chexnet/train/run/run_decisions.hpp"

#include <cassert>

namespace chexnet {

// What the run's own config.yaml says: a resume, or somebody who repeats the
// run elsewhere, gets the batch that was chosen and not another one.
Config with_decisions(Config config, const RunDecisions& decisions) {
  assert(decisions.batch > 0);
  config.train.batch = decisions.batch;
  return config;
}

}  // namespace chexnet
