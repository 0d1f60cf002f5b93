// LibTorch's threads for a part of a run.
#pragma once

#include "chexnet/model/thread_scope.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

// Those that an evaluation computes with: eval.threads, else the rank's.
ThreadScope evaluation_threads(const RunContext& run);

}  // namespace chexnet
