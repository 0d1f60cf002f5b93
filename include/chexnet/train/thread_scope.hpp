// LibTorch's number of threads for a scope.
#pragma once

#include "chexnet/train/run_context.hpp"

namespace chexnet {

class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

// Those that an evaluation computes with: eval.threads, else the rank's.
ThreadScope evaluation_threads(const RunContext& run);

}  // namespace chexnet
