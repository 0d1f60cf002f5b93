#include "chexnet/train/thread_scope.hpp"

#include <ATen/Parallel.h>

namespace chexnet {

// LibTorch's number is of the whole process, so it is set back, also when an
// exception ends the scope.
ThreadScope::ThreadScope(int threads) : before_(at::get_num_threads()) {
  at::set_num_threads(threads);
}

ThreadScope::~ThreadScope() { at::set_num_threads(before_); }

ThreadScope evaluation_threads(const RunContext& run) {
  const int64_t asked = run.config.eval.threads;
  return ThreadScope(asked > 0 ? static_cast<int>(asked) : run.device.threads);
}

}  // namespace chexnet
