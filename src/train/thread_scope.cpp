#include "chexnet/train/thread_scope.hpp"

namespace chexnet {

ThreadScope evaluation_threads(const RunContext& run) {
  const int64_t asked = run.config.eval.threads;
  return ThreadScope(asked > 0 ? static_cast<int>(asked) : run.device.threads);
}

}  // namespace chexnet
