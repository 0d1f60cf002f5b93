// The thin parent that starts ranks through mpirun, waits for them, and starts them again.
#pragma once

#include "chexnet/app/run_options.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {

// Runs `launch` to its end and returns the exit code for the user. With a run folder, a failure is
// explained by one sentence, the last line of output, and restarted as often as the task says.
int run_ranks(SelfLaunch launch, const ParentTask& task);

}  // namespace chexnet
