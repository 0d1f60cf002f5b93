#include "chexnet/run/run_decisions.hpp"

#include <cassert>

namespace chexnet {

Config with_decisions(Config config, const RunDecisions& decisions) {
  assert(decisions.batch > 0);
  config.train.batch = decisions.batch;
  return config;
}

}  // namespace chexnet
